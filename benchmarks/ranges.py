"""The expected ratios: `ranges.yaml`, read strictly."""

from pathlib import Path

import msgspec
import yaml

PATH = Path(__file__).with_name("ranges.yaml")


class Ranges(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Limits by shape. A shape without an entry has no limit."""

    #: Minimum of Bayplan's rate over the better rate of kube-scheduler.
    peer_at_least: dict[str, float]
    #: Maximum of the time per pod over that of basic-5000.
    cycle_at_most: dict[str, float]
    #: Minimum of the rate with reuse over that without, by load of bench_reuse.
    reuse_at_least: dict[str, float]
    #: Maximum of the time per attempt with the sinks of `bayplan run` over that without.
    journal_at_most: float
    #: Maximum of the time of `bayplan why` on a live cluster over that of its lists.
    why_at_most: float
    #: Minimum of pods bound in one pass per second of processor time, by load of bench_gangs.
    group_pods_per_second_at_least: dict[str, float]
    #: Maximum of the milliseconds of processor time of an attempt at a group that does not fit.
    failed_group_milliseconds_at_most: float


def ranges() -> Ranges:
    return msgspec.convert(yaml.safe_load(PATH.read_text(encoding="utf-8")), Ranges)
