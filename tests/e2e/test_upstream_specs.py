"""Kubernetes' specs for schedulers pass with `bayplan run` as the cluster's only scheduler.

    make test-e2e

Each suite runs once, in a cluster of its own; all suites run at the same time. Each spec is
a test. With E2E_OUT=DIR the reports and logs stay in that folder.
"""

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import cast

import pytest

from tests.e2e.binaries import PROGRAMS
from tests.e2e.running import SpecResult, run_suite
from tests.e2e.suites import SUITES, Suite
from tests.go_programs import NoBinaries

CASES = [
    pytest.param(suite, spec, id=f"{suite.name}: {spec}")
    for suite in SUITES
    for spec in suite.specs()
]
Results = dict[str, SpecResult]


@pytest.fixture(scope="module")
def results(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Future[Results]]]:
    """The results by suite, for the suites of the selected tests."""
    try:
        binaries = PROGRAMS.get()
    except NoBinaries as problem:
        pytest.exit(str(problem), returncode=1)
    out = Path(os.environ.get("E2E_OUT") or tmp_path_factory.mktemp("e2e")).resolve()
    items = cast("list[pytest.Function]", request.session.items)
    here = [item.callspec.params for item in items if item.path == request.path]
    names = {cast("Suite", parameters["suite"]).name for parameters in here}
    with ThreadPoolExecutor(len(SUITES)) as executor:
        futures: dict[str, Future[Results]] = {}
        for suite in SUITES:
            if suite.name in names:
                folder = out / suite.name
                folder.mkdir(parents=True, exist_ok=True)
                futures[suite.name] = executor.submit(run_suite, binaries, suite, folder)
        yield futures


@pytest.mark.parametrize(("suite", "spec"), CASES)
def test_the_spec_of_kubernetes_passes(
    suite: Suite, spec: str, results: dict[str, Future[Results]]
) -> None:
    of_suite = results[suite.name].result()
    outside = {name: result for name, result in of_suite.items() if name.startswith("(")}
    assert not outside, "a step before or after the specs failed"
    assert spec in of_suite, "e2e.test did not run this spec"
    assert of_suite[spec].state == "passed", of_suite[spec].message
