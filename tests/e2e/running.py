"""One run of e2e.test over the specs of a suite, and its report."""

import json
import re
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.cluster import NODE_COUNT, E2ECluster, cluster
from tests.e2e.suites import Suite

#: For a whole suite; a spec that fails takes up to five minutes.
SUITE_MINUTES_MAX = 120
_POLL_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class SpecResult:
    """The report of e2e.test about one spec."""

    #: "passed", "failed", "skipped", "timedout", …
    state: str
    message: str = ""
    seconds: float = 0.0


def run_suite(binaries: Path, suite: Suite, folder: Path) -> dict[str, SpecResult]:
    """Run a suite in a cluster of its own. Returns the results by the names of specs.

    ``folder`` gets the report and the logs of e2e.test and of the scheduler.
    """
    with cluster(binaries, suite, folder / "scheduler.log") as running:
        _run(binaries, running, suite, folder)
    return _results(folder / "report.json")


def _run(binaries: Path, running: E2ECluster, suite: Suite, folder: Path) -> None:
    # e2e.test matches the expression anywhere in "Kubernetes e2e suite NAME".
    focus = "|".join(map(re.escape, suite.specs())).replace("\\ ", " ")
    arguments = [
        f"--kubeconfig={running.kubeconfig}",
        "--provider=skeleton",
        f"--num-nodes={NODE_COUNT}",
        "--allowed-not-ready-nodes=0",
        "--node-schedulable-timeout=1m",
        "--system-pods-startup-timeout=1m",
        "--system-daemonsets-startup-timeout=1m",
        "--dump-logs-on-failure=false",
        f"--ginkgo.focus={focus}",
        f"--ginkgo.timeout={SUITE_MINUTES_MAX}m",
        "--ginkgo.no-color",
        "--ginkgo.seed=1",
        f"--ginkgo.json-report={folder / 'report.json'}",
    ]
    with (folder / "e2e.log").open("wb") as log:
        process = subprocess.Popen(
            [binaries / "e2e.test", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            # e2e.test reads the kubeconfig's relative paths from its own folder.
            cwd=Path(running.kubeconfig).parent,
        )
        try:
            while process.poll() is None:
                running.check()
                time.sleep(_POLL_SECONDS)
        finally:
            process.kill()
            process.wait()


def _results(report: Path) -> dict[str, SpecResult]:
    """The specs that were selected. A failure before or after them has a name of its own."""
    results: dict[str, SpecResult] = {}
    for suite in json.loads(report.read_text()):
        for spec in suite.get("SpecReports") or ():
            result = SpecResult(
                spec["State"],
                (spec.get("Failure") or {}).get("Message", ""),
                round(spec["RunTime"] / 1e9, 1),
            )
            if spec["LeafNodeType"] == "It":
                if result.state != "skipped" or result.message:
                    results[_name(spec)] = result
            elif result.state not in ("passed", "skipped"):
                results[f"({spec['LeafNodeType']})"] = result
    return results


def _name(spec: dict[str, Any]) -> str:
    return " ".join([*(spec.get("ContainerHierarchyTexts") or ()), spec["LeafNodeText"]]).strip()
