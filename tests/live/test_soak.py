"""Memory, descriptors, threads and tasks of `bayplan run` stay flat while pods come and go."""

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.live.control_plane import ControlPlane
from tests.live.soak import Sample, growth, soak

#: `make soak SOAK=60` lasts an hour.
MINUTES = float(os.environ.get("SOAK", "1"))


@pytest.mark.timeout(60 * MINUTES + 300)
def test_nothing_grows_while_pods_are_created_and_deleted(
    control_plane: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines: list[str] = []
    samples = asyncio.run(soak(control_plane, tmp_path, MINUTES, lines.append))
    with capsys.disabled():
        print("\n" + "\n".join(lines))
    assert growth(samples) == []


def test_a_leak_is_reported_and_noise_is_not() -> None:
    flat = [Sample(n, n, 100.0 + n % 3, 20, 5, 30) for n in range(40)]
    assert growth(flat) == []
    leaking = [replace(each, tasks=30 + each.pods_created) for each in flat]
    assert growth(leaking) == ["tasks grew from 44.5 to 60"]
