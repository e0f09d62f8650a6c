"""The manifests of the repository request what the product needs."""

import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.cli import run
from bayplan.config import load_config
from bayplan.plugins.registry import Registry
from bayplan.profile.resolved_config import resolve
from bayplan.serving.rbac import Names, manifests
from bayplan.serving.scheduler_server import ServerOptions
from tests.cli.command_line import bayplan
from tests.deploy.rendering import (
    DEPLOY,
    MANIFESTS,
    NAMESPACE,
    RULES,
    WEBHOOK_RULES,
    documents,
    rules,
    webhook_rules,
)


def manifest_of(kind: str) -> dict[str, Any]:
    manifests = documents(MANIFESTS.read_text(encoding="utf-8"))
    (only,) = [manifest for manifest in manifests if manifest["kind"] == kind]
    return only


def container() -> dict[str, Any]:
    (only,) = manifest_of("Deployment")["spec"]["template"]["spec"]["containers"]
    return only


def config_text() -> str:
    return manifest_of("ConfigMap")["data"]["scheduler.yaml"]


def test_the_rules_of_the_chart_are_those_that_the_product_needs() -> None:
    assert RULES.read_text(encoding="utf-8") == rules(), "run `make manifests`"


def test_the_rules_of_the_webhook_are_those_that_it_needs() -> None:
    assert WEBHOOK_RULES.read_text(encoding="utf-8") == webhook_rules(), "run `make manifests`"


def test_the_roles_are_those_that_the_configuration_needs() -> None:
    config = load_config(config_text(), "ConfigMap")
    for expected in manifests(config, Registry(), Names(namespace=NAMESPACE)):
        manifest = manifest_of(expected["kind"])
        for part in ("rules", "roleRef", "subjects"):
            assert manifest.get(part) == expected.get(part), expected["kind"]


def test_every_object_is_in_the_created_namespace() -> None:
    namespace = yaml.safe_load((DEPLOY / "manifests" / "10-namespace.yaml").read_text())
    assert namespace["metadata"]["name"] == NAMESPACE
    for manifest in documents(MANIFESTS.read_text(encoding="utf-8")):
        if not manifest["kind"].startswith("ClusterRole"):
            assert manifest["metadata"]["namespace"] == NAMESPACE, manifest["kind"]


def test_the_configuration_of_the_manifests_is_valid() -> None:
    (profile,) = resolve(load_config(config_text(), "ConfigMap"), Registry()).profiles
    assert profile.name == "bayplan"


def test_the_arguments_of_the_container_are_valid(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_text(config_text())
    server_options: list[Any] = []

    async def serve(options: ServerOptions) -> None:
        server_options.append(options)

    monkeypatch.setattr(run, "serve", serve)
    monkeypatch.setattr(run, "write_log", lambda *args: None)
    line = [arg.replace("/etc/bayplan/scheduler.yaml", str(config)) for arg in container()["args"]]
    assert bayplan(*line).exit_code == 0
    (options,) = server_options
    (port,) = container()["ports"]
    assert options.serving.port == port["containerPort"]
    assert not options.serving.is_open


def test_a_network_policy_names_the_clients_of_the_endpoints() -> None:
    policy = manifest_of("NetworkPolicy")["spec"]
    labels = manifest_of("Deployment")["spec"]["template"]["metadata"]["labels"]
    assert policy["podSelector"]["matchLabels"].items() <= labels.items()
    (rule,) = policy["ingress"]
    (port,) = container()["ports"]
    assert rule["ports"] == [{"port": port["name"], "protocol": "TCP"}]
    assert rule["from"]
    assert all(rule["from"])


def test_the_container_runs_with_minimal_privileges() -> None:
    pod = manifest_of("Deployment")["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"]
    own = container()["securityContext"]
    assert own["readOnlyRootFilesystem"]
    assert not own["allowPrivilegeEscalation"]
    assert own["capabilities"] == {"drop": ["ALL"]}
    assert not pod.get("hostNetwork")
    assert not [volume for volume in pod["volumes"] if "hostPath" in volume]


def test_probes_use_the_open_paths() -> None:
    for probe, path in (("livenessProbe", "/livez"), ("readinessProbe", "/readyz")):
        result = container()[probe]["httpGet"]
        assert (result["path"], result["scheme"]) == (path, "HTTPS")


def test_the_image_runs_as_an_unprivileged_user_and_starts_the_scheduler() -> None:
    lines = (DEPLOY / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    user = int(next(line for line in lines if line.startswith("USER ")).split()[1].split(":")[0])
    assert (
        user
        == manifest_of("Deployment")["spec"]["template"]["spec"]["securityContext"]["runAsUser"]
    )
    assert 'ENTRYPOINT ["bayplan"]' in lines
    root = DEPLOY.parent
    for line in lines:
        if line.startswith("COPY ") and "--from" not in line:
            *sources, _ = shlex.split(line)[1:]
            assert all((root / source).exists() for source in sources), line


def dry_run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A dry run of `make image`."""
    command = ["make", "--no-print-directory", "--dry-run", "image", *arguments]
    return subprocess.run(command, cwd=DEPLOY.parent, capture_output=True, text=True, check=False)


def test_one_command_builds_the_image_for_both_architectures() -> None:
    base = f"python:3.13-slim@sha256:{'0' * 64}"
    completed = dry_run("IMAGE=registry.example/bayplan:1", f"BASE={base}")
    words = shlex.split(completed.stdout.splitlines()[-1])
    assert words[:3] == ["docker", "buildx", "build"]
    assert words[words.index("--platform") + 1].split(",") == ["linux/amd64", "linux/arm64"]
    assert words[words.index("--tag") + 1] == "registry.example/bayplan:1"
    assert words[words.index("--build-arg") + 1] == f"BASE={base}"
    assert (DEPLOY.parent / words[words.index("--file") + 1]).is_file()


@pytest.mark.parametrize(
    "base",
    [
        "",
        "python:3.13-slim",
        "python:3.13-slim@sha256:",
        "python:3.13-slim@sha256:abc",
        f"python:3.13-slim@sha256:{'0' * 63}",
        f"python:3.13-slim@sha256:{'0' * 65}",
        f"python:3.13-slim@sha256:{'G' * 64}",
        f"@sha256:{'0' * 64}",
        f"sha256:{'0' * 64}",
        f"python:3.13-slim@md5:{'0' * 64}",
        f"python:3.13-slim@sha256:{'0' * 64} other",
    ],
)
def test_no_image_is_pushed_from_a_base_without_a_digest(base: str) -> None:
    command = [
        "make",
        "--no-print-directory",
        "image",
        "IMAGE=registry.example/x:1",
        f"BASE={base}",
    ]
    completed = subprocess.run(
        command, cwd=DEPLOY.parent, capture_output=True, text=True, check=False
    )
    assert completed.returncode == 2
    assert completed.stderr.startswith("BASE is no image with a digest")


def test_each_stage_of_the_image_has_the_base_that_is_given() -> None:
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    assert re.findall(r"^FROM (\S+)", text, re.MULTILINE) == ["${BASE}", "${BASE}"]


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-dev.lock"])
def test_each_locked_file_has_a_hash(name: str) -> None:
    text = (DEPLOY.parent / name).read_text(encoding="utf-8")
    entries = re.split(r"\n(?=\S)", re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE))
    assert len(entries) > 20
    assert [entry for entry in entries if "==" not in entry or "--hash=sha256:" not in entry] == []
    assert "//" not in text


def test_running_and_development_have_the_same_versions() -> None:
    def versions(name: str) -> set[str]:
        text = (DEPLOY.parent / name).read_text(encoding="utf-8")
        return set(re.findall(r"^(\S+==\S+)", text, re.MULTILINE))

    assert versions("requirements.lock") < versions("requirements-dev.lock")


def test_the_image_is_independent_of_the_architecture() -> None:
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    instructions = [line for line in text.splitlines() if not line.startswith("#")]
    assert not re.search(r"amd64|arm64|x86_64|aarch64|--platform", "\n".join(instructions))


def test_two_replicas_use_leader_election_and_their_service_account() -> None:
    assert manifest_of("Deployment")["spec"]["replicas"] == 2
    assert load_config(config_text(), "ConfigMap").spec.leader_election.leader_elect
    pod = manifest_of("Deployment")["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == manifest_of("ServiceAccount")["metadata"]["name"]
    assert not any("kubeconfig" in argument for argument in container()["args"])
    assert "clientConnection" not in config_text()


def test_the_image_is_built_from_tracked_files() -> None:
    included = (DEPLOY.parent / ".dockerignore").read_text(encoding="utf-8").split()
    copied = re.findall(r"^COPY (?!--)(.*) \S+$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
    assert {f"!{name}" for line in copied for name in line.split()} <= set(included)


def test_no_manifest_creates_nodes() -> None:
    paths = [
        path for name in ("examples", "crds", "manifests") for path in (DEPLOY / name).iterdir()
    ]
    kinds = {one["kind"] for path in paths for one in documents(path.read_text(encoding="utf-8"))}
    assert {"PodGroup", "ReplicaSet", "Deployment", "CustomResourceDefinition"} <= kinds
    assert not kinds & {"Node", "List"}
