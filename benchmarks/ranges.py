"""The ratios that are wanted: `ranges.yaml`, read strictly."""

from pathlib import Path

import msgspec
import yaml

PATH = Path(__file__).with_name("ranges.yaml")


class Ranges(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Shape by shape; a shape that is not named has no range."""

    #: Rate here over kube-scheduler's better one: at least.
    peer_at_least: dict[str, float]
    #: Time per pod over that of basic-5000: at most.
    cycle_at_most: dict[str, float]
    #: Rate with reuse over that without: at least, by load of bench_reuse.
    reuse_at_least: dict[str, float]
    #: Time per attempt with the sinks of `bayplan run` over that without, at any size: at most.
    journal_at_most: float
    #: Time of `bayplan why` on a live cluster over that of its lists: at most.
    why_at_most: float
    #: Pods bound in one pass per second of processor time: at least, by load of bench_gangs.
    group_pods_per_second_at_least: dict[str, float]
    #: Processor time of an attempt at a group that does not fit: at most, in milliseconds.
    failed_group_milliseconds_at_most: float


def ranges() -> Ranges:
    return msgspec.convert(yaml.safe_load(PATH.read_text(encoding="utf-8")), Ranges)
