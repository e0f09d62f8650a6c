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
    table = bayplan.compare([QUICKSTART], CONFIGURATIONS, "0..2")
    for row in table:
        print(
            row["configuration"], row["seed"], f"{row['fragmented_cpu_percent']:.2f} % fragmented"
        )

    # %% The same, summed up: pairs of runs had the same seed
    difference = table.paired("", "packed", "fragmented_cpu_percent")
    assert difference is not None
    print(
        f"packed - spread: {difference.mean:+.2f} [{difference.low:+.2f}, {difference.high:+.2f}]"
    )


# Each process reads this file again: only the first of them compares.
if __name__ == "__main__":
    main()
