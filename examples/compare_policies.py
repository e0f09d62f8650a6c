"""Two ways to place the quickstart's pods, compared from Python.

    python examples/compare_policies.py

Reads like a notebook: each step is a cell. What it prints is a table that pandas, Polars or plain
Python can go on with.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import bayplan

QUICKSTART = Path(__file__).parent / "quickstart"


# %% Two configurations that differ in one word
def scored_by(strategy: str) -> Mapping[str, Any]:
    scoring = {"type": strategy, "resources": [{"name": "cpu", "weight": 1}]}
    args = {"name": "NodeResourcesFit", "args": {"scoringStrategy": scoring}}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"pluginConfig": [args]}],
    }


CONFIGURATIONS = {"spread": scored_by("LeastAllocated"), "packed": scored_by("MostAllocated")}


# %% Run both with three seeds; each row is a run
def main() -> None:
    answer = bayplan.compare([QUICKSTART], CONFIGURATIONS, "0..2")
    for run in answer.inputs[""].runs:
        percent = run.metrics["fragmented_cpu_percent"]
        print(run.configuration, run.seed, f"{percent:.2f} % fragmented")

    # %% The same, summed up, as `bayplan compare` prints it; pairs of runs had the same seed
    print(answer)


# Each process reads this file again: only the first of them compares.
if __name__ == "__main__":
    main()
