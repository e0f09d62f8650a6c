# One command for each thing that is done here; nothing else does what a target does.

PYTHON ?= python3
# How many processes the tests use.
JOBS ?= 2
# Seeds that `make sim` tries: a count, or a range such as 1000..1099. SEED=7 replays one.
SEEDS ?= 20
# Machines that draw from such a seed; they try one seed of 200.
MACHINES := tests/engine/test_reuse_machine.py tests/engine/test_gang_machine.py tests/engine/test_tree_machine.py
# Tests that draw more with BAYPLAN_DEEP=1, which `make deep` and .ci/run set.
DEEP_TESTS := tests/engine tests/queue tests/sim tests/cases tests/plugins tests/testing
# Examples that `make properties` draws for each property; `make test` draws 30, and CI 50.
EXAMPLES ?= 5000
# How many minutes `make soak` lasts.
SOAK ?= 10
PARITY_DIR ?=
SCENARIOS_DIR ?=
SCENARIOS_FLAGS ?=
PEER_DIR ?=
PROMTOOL ?=
UPSTREAM_DIR ?=
BENCH_FLAGS ?=
TRACE_DIR ?=
# What `make coverage` runs; empty: everything.
COVERAGE_TESTS ?=
# What `make coverage-floor` measures, and the tests of that.
FLOOR_PACKAGES := bayplan.plugins,bayplan.engine.ranking,bayplan.engine.reuse
FLOOR_TESTS := tests/plugins tests/engine/ranking tests/engine/reuse tests/engine/test_reuse_steps.py
# The state machine runs in `make test`, too, and draws more only there: what it measures here needs few draws.
FLOOR_MACHINE := tests/engine/test_reuse_machine.py::test_reuse_changes_no_decision
# Not empty: `make test` leaves these tests to `make coverage-floor`.
WITHOUT_FLOOR ?=
OUT ?=
IMAGE ?=
BASE ?=
SCREENSHOTS ?=
PLATFORMS ?= linux/amd64,linux/arm64
WRITE ?=
# The date of files in packages: equal commits give equal packages.
export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 1600000000)

BIN := .venv/bin
# What running needs, and what development needs, with the hashes of all files.
RUNTIME_LOCK := requirements.lock
LOCK := requirements-dev.lock
UV := $(shell command -v uv 2>/dev/null || true)

# Both ways install the same locked versions. The seed is pip, for a later run without uv.
ifneq ($(UV),)
CREATE_VENV = uv venv --quiet --seed --allow-existing --python "$(PYTHON)" .venv
INSTALL = uv pip install --quiet --python $(BIN)/python
else
CREATE_VENV = "$(PYTHON)" -m venv .venv
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check
endif

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: demo test test-live soak test-alerts test-e2e test-ui check coverage coverage-floor bench bench-gangs bench-peer bench-upstream parity scenarios sim deep properties manifests image wheel \
	release-check changelog site docs help clean static

demo: .venv/.runtime ## simulate examples/quickstart (installs what running needs, nothing more)
	$(BIN)/bayplan demo

test: static ## everything in `check`, then all tests; pytest's summary is the last line
	@$(BIN)/python -m pytest -n $(JOBS) $(if $(WITHOUT_FLOOR),$(FLOOR_TESTS:%=--ignore=%))

test-live: .venv/.dev ## tests with a real etcd, kube-apiserver (KUBEBUILDER_ASSETS) and Helm, which are built once
	@$(BIN)/python -m tests.live.binaries
	@$(BIN)/python -m tests.deploy.rendering
	@$(BIN)/python -m tests.deploy.checkers
	@$(BIN)/python -m pytest tests/live

soak: .venv/.dev ## churn against a real API server: memory, descriptors and tasks stay flat (SOAK=60: minutes)
	@$(BIN)/python -m tests.live.binaries
	@$(BIN)/python -m tests.live.soak --minutes $(SOAK)

test-alerts: .venv/.dev ## the alerts of the chart, with promtool (PROMTOOL, or built once with Go: many minutes)
	@[ -n "$(PROMTOOL)" ] || $(BIN)/python -m tests.deploy.checkers promtool
	@$(BIN)/python -m tests.deploy.rendering
	@$(BIN)/python -m pytest tests/live/test_alert_rules.py

test-e2e: .venv/.dev ## Kubernetes' own e2e specs: programs from E2E_ASSETS, or built once with Go
	@$(BIN)/python -m tests.e2e.binaries
	@$(BIN)/python -m pytest tests/e2e --timeout 0

test-ui: .venv/.dev ## the page in Chromium, from the wheel (SCREENSHOTS=docs/images writes the pictures of docs/ui.md)
	@command -v "$${CHROMIUM:-chromium}" >/dev/null || { \
		echo "There is no Chromium: install the Debian package chromium, or set CHROMIUM to a program." >&2; exit 2; }
	@rm -rf build/ui
	@$(BIN)/python -m hatchling build --target wheel --directory build/ui
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target build/ui/package build/ui/*.whl
	@BAYPLAN_UI_PACKAGE=build/ui/package PYTHONPATH=build/ui/package SCREENSHOTS="$(SCREENSHOTS)" \
		$(BIN)/python -m pytest tests/ui/browser

check: static ## lint, format, types, layers, architecture
	@$(BIN)/python -m pytest -q tests/test_architecture.py

coverage: .venv/.dev ## all tests with branch coverage of src: the total, and what has too few of its lines run
	@$(BIN)/python -m coverage erase
	@$(BIN)/python -m coverage run -m pytest -q -n $(JOBS) $(COVERAGE_TESTS)
	@$(BIN)/python -m coverage combine -q
	@$(BIN)/python -m coverage json -q -o .coverage.json
	@$(BIN)/python -m tests.coverage_report .coverage.json

coverage-floor: export COVERAGE_FILE := .coverage-floor
coverage-floor: .venv/.dev ## the plugins and reuse alone, by their own tests: the total, and what has too few of its lines run
	@$(BIN)/python -m coverage erase
	@$(BIN)/python -m coverage run --source=$(FLOOR_PACKAGES) -m pytest -q -n $(JOBS) $(FLOOR_TESTS)
	@BAYPLAN_DEEP= $(BIN)/python -m coverage run --source=$(FLOOR_PACKAGES) -m pytest -q -n $(JOBS) $(FLOOR_MACHINE)
	@$(BIN)/python -m coverage combine -q
	@$(BIN)/python -m coverage json -q -o .coverage-floor.json
	@$(BIN)/python -m tests.coverage_report .coverage-floor.json "plugins and reuse by their own tests"

static: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports --no-logo

bench: .venv/.dev ## measure scheduling cycles (BENCH_FLAGS=...), then reuse (TRACE_DIR=../shared/data/openb)
	$(BIN)/python -m benchmarks cycle $(BENCH_FLAGS)
	$(BIN)/python -m benchmarks reuse $(if $(TRACE_DIR),--trace "$(TRACE_DIR)")

bench-gangs: .venv/.dev ## groups in one pass and one by one, in one run (BENCH_FLAGS=--divide=10)
	$(BIN)/python -m benchmarks gangs $(BENCH_FLAGS)

bench-peer: need-PEER_DIR .venv/.dev ## the same loads here and by a peer: PEER_DIR=../shared/peer OUT=rows.json
	$(BIN)/python -m benchmarks peer --peer-dir "$(PEER_DIR)" $(if $(OUT),--out "$(OUT)") $(BENCH_FLAGS)

bench-upstream: .venv/.dev ## upstream's scheduler_perf files in their smallest sizes (UPSTREAM_DIR=…/scheduler_perf; else Go downloads them)
	$(BIN)/python -m benchmarks upstream $(if $(UPSTREAM_DIR),--folder "$(UPSTREAM_DIR)")

parity: need-PARITY_DIR .venv/.dev ## compare with kube-scheduler's recorded answers: PARITY_DIR=../shared/parity (KUBERNETES=1.36.3: of that version)
	$(BIN)/python -m tests.parity.runner "$(PARITY_DIR)" $(if $(KUBERNETES),--kubernetes "$(KUBERNETES)")

scenarios: need-SCENARIOS_DIR .venv/.dev ## run a folder of scenarios: SCENARIOS_DIR=../shared/scenarios (SCENARIOS_FLAGS=...)
	$(BIN)/python "$(SCENARIOS_DIR)/check.py" --project . $(SCENARIOS_FLAGS) $(BIN)/bayplan

deep: .venv/.dev ## what `make test` draws a little of, with many steps: machines, planted faults, dumps of 1,000 nodes
	BAYPLAN_DEEP=1 $(BIN)/python -m pytest --timeout=0 -n $(JOBS) $(DEEP_TESTS)

sim: .venv/.dev ## simulate with faults: SEEDS=200 tries the first 200 seeds, SEEDS=1000..1099 these, SEED=7 replays one
ifdef SEED
	BAYPLAN_SIM_SEED=$(SEED) $(BIN)/python -m tests.sim.seed_runs
	BAYPLAN_DEEP=1 BAYPLAN_SIM_SEED=$(SEED) $(BIN)/python -m pytest --timeout=0 $(MACHINES)
else
	BAYPLAN_SIM_SEEDS=$(SEEDS) $(BIN)/python -m tests.sim.seed_runs --jobs $(JOBS)
	BAYPLAN_DEEP=1 BAYPLAN_SIM_SEEDS=$(SEEDS) $(BIN)/python -m pytest --timeout=0 -n $(JOBS) tests/sim/test_planted_faults.py $(MACHINES)
endif

properties: .venv/.dev ## the tests of properties with many examples (EXAMPLES=5000)
	CI= BAYPLAN_EXAMPLES=$(EXAMPLES) $(BIN)/python -m pytest --timeout=0 -n $(JOBS) -m hypothesis

manifests: .venv/.dev ## write deploy/manifests and what else follows from the chart anew (needs Helm or Go)
	$(BIN)/python -m tests.deploy.writing

image: ## build the image for both architectures and push it: IMAGE=registry.example/bayplan:1.2 BASE=python:3.13-slim@sha256:… (needs Docker's buildx)
	@[ -n "$(IMAGE)" ] || { echo "IMAGE is not given. For example: make image IMAGE=registry.example/bayplan:1.2" >&2; exit 2; }
	@echo "$(BASE)" | grep -Eq '^[^@ ]+@sha256:[0-9a-f]{64}$$' || { \
		echo "BASE is no image with a digest, and a tag may be moved to another image. Wanted BASE=python:3.13-slim@sha256:…;" \
			"\`docker buildx imagetools inspect python:3.13-slim\` shows the digest" >&2; exit 2; }
	docker buildx build --platform "$(PLATFORMS)" --build-arg "BASE=$(BASE)" --build-arg "SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH)" --file deploy/Dockerfile --tag "$(IMAGE)" --output type=image,push=true,rewrite-timestamp=true .

wheel: .venv/.dev ## build the wheel and the sdist into dist
	@echo "Building the wheel and the sdist"
	@$(BIN)/python -m hatchling build --directory dist

release-check: .venv/.dev ## packages, installation on each Python at hand, SBOMs in dist, licences
	@$(BIN)/python -m tests.release.checking

changelog: .venv/.dev ## show the section of the next release; WRITE=1 puts it into CHANGELOG.md
	@$(BIN)/python -m towncrier build $(if $(WRITE),--yes,--draft)

site: .venv/.dev ## build the documents as a site into build/site
	@echo "Building the site; this takes about a minute"
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "The site is in build/site: open build/site/index.html"

docs: .venv/.dev ## check that the links in the documents lead somewhere
	@$(BIN)/python -m pytest -q tests/test_architecture.py -k documents

help: ## this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):[^#]*## /\1\t/' \
		| while IFS="$$(printf '\t')" read -r name text; do printf 'make %-14s %s\n' "$$name" "$$text"; done

clean: ## remove the environment and everything made by tools
	rm -rf .venv build dist .hypothesis .pytest_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Asked before anything is installed: is the folder given, and is it there?
need-PEER_DIR: example = make bench-peer PEER_DIR=../shared/peer
need-PARITY_DIR: example = make parity PARITY_DIR=../shared/parity
need-SCENARIOS_DIR: example = make scenarios SCENARIOS_DIR=../shared/scenarios

need-%:
	@[ -n "$($*)" ] || { echo "$* is not given. For example: $(example)" >&2; exit 2; }
	@[ -d "$($*)" ] || { echo "$*=$($*) is no folder. For example: $(example)" >&2; exit 2; }

# ---------------------------------------------------------------- the environment

.venv/.created:
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "Bayplan needs Python 3.11 or newer, and $(PYTHON) is" \
			"$$("$(PYTHON)" --version 2>/dev/null || echo missing). Name another: make PYTHON=python3.12" >&2; \
		exit 1; }
	@$(CREATE_VENV) || { \
		echo "The environment could not be made: Debian and Ubuntu need the package python3-venv." >&2; \
		exit 1; }
	@touch $@

.venv/.runtime: .venv/.created pyproject.toml $(RUNTIME_LOCK)
	@echo "Installing Bayplan into .venv: this takes up to a minute, once"
	@$(INSTALL) --require-hashes --requirement $(RUNTIME_LOCK)
	@$(INSTALL) --no-deps --editable .
	@# As for other packages: what is installed as editable gets no bytecode from pip.
	@$(BIN)/python -m compileall -q src
	@touch $@

.venv/.dev: .venv/.runtime $(LOCK) examples/gpu_sharing/pyproject.toml
	@echo "Installing the tools for development into .venv: this takes up to two minutes, once"
	@$(INSTALL) --require-hashes --requirement $(LOCK)
	@$(INSTALL) --no-deps --editable examples/gpu_sharing
	@touch $@
