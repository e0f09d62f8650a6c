"""Pods that ask for GPUs."""

from typing import Any

from bayplan.testing import pod


def gpu(name: str, milli: int = 1000, count: int = 1, cpu: int = 0, devices: str = "") -> Any:
    notes = {"bayplan.dev/gpu-milli": str(milli)}
    if devices:
        notes["gpu-sharing.bayplan.dev/devices"] = devices
    return pod(name, cpu=cpu, requests={"nvidia.com/gpu": count}, annotations=notes)
