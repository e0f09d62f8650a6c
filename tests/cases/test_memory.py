"""The commands of one process leave nothing of a scheduler behind."""

import gc
from collections import Counter
from pathlib import Path
from typing import Any

from bayplan.engine.core import EngineCore
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.runtime import Framework
from tests.cases.dumps import draw_dump
from tests.cases.every_command import Input, check_page, succeeded
from tests.cli.command_line import write_objects
from tests.kit.manifests import pod

_PACKAGES = ("bayplan.engine", "bayplan.framework", "bayplan.model", "bayplan.plugins")


def _live() -> Counter[type]:
    """How many objects there are of each class of the scheduler and its plugins."""
    gc.collect()
    kinds = Counter(map(type, gc.get_objects()))
    return Counter({k: n for k, n in kinds.items() if str(k.__module__).startswith(_PACKAGES)})


def test_a_command_leaves_no_scheduler_behind_beside_an_open_page(tmp_path: Path) -> None:
    """All schedulers of a process share the shapes of equal pods, and the page holds some."""
    file = tmp_path / "dump.json"
    write_objects(file, {"kind": "List", "items": draw_dump(1, 4).objects})
    shape = write_objects(tmp_path / "shape.json", pod("shape", cpu="3"))
    given, before = Input.of_file(file), _live()
    node = given.nodes[0]
    page = check_page(given)
    after_page = _live() - before
    assert [after_page[kind] for kind in (Scheduler, EngineCore, Framework)] == [1, 1, 1]
    commands: list[tuple[Any, ...]] = [
        ("simulate", file),
        ("headroom", "-f", shape, file),
        ("fit", "-f", shape, file),
        ("whatif", file, "--drain", node, "--force"),
    ]

    def run_all() -> Counter[type]:
        for command in commands:
            succeeded(*command, codes=(0, 1))
        return _live() - before

    # The first round fills what a process computes once.
    first, second, third = run_all(), run_all(), run_all()
    assert [first[kind] for kind in (Scheduler, EngineCore, Framework)] == [1, 1, 1]
    assert first == second == third
    assert page.answer().phase == "ready"
