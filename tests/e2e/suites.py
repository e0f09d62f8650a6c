"""The suites: specs that run in one cluster.

A spec is in no suite if it needs a container that runs: a command in a container, its log, a probe,
or an image that cannot be pulled.
"""

from dataclasses import dataclass
from pathlib import Path

_SPECS = Path(__file__).with_name("specs")


@dataclass(frozen=True, slots=True)
class Suite:
    """Specs and the settings of their cluster."""

    #: Also the name of the file with the specs.
    name: str
    title: str
    #: Feature gates of the API server and the controllers.
    feature_gates: str = ""
    #: Further APIs that the API server offers.
    runtime_config: str = ""
    #: Feature gates of the scheduler.
    scheduler_gates: str = ""

    def specs(self) -> list[str]:
        """Names as e2e.test writes them, in alphabetical order."""
        return (_SPECS / f"{self.name}.txt").read_text().splitlines()


SUITES = (
    Suite("scheduling", "Scheduling"),
    Suite(
        "pod_groups",
        "Pod groups",
        feature_gates="GenericWorkload=true",
        runtime_config="scheduling.k8s.io/v1beta1=true",
        scheduler_gates="GenericWorkload=true",
    ),
    Suite("devices_and_daemons", "Devices, daemons, runtime classes and taints"),
    Suite(
        "all_gates",
        "All gates",
        feature_gates="AllAlpha=true,AllBeta=true",
        runtime_config="api/all=true",
        scheduler_gates="AllAlpha=true,AllBeta=true",
    ),
)
