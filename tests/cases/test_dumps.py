"""Every command on every reported case, and on dumps of clusters of all providers."""

from pathlib import Path

import pytest

from tests.cases.dumps import draw_dump
from tests.cases.every_command import Input, check_every_command, check_simulation, succeeded
from tests.cli.command_line import write_objects
from tests.seeded import depth

_FOLDER = Path(__file__).parent
#: A workload without nodes is read together with its nodes.
_TOGETHER = {"02-wl.yaml": ("02-nodes.yaml",)}
CASES = sorted(path for path in _FOLDER.iterdir() if path.suffix in (".yaml", ".json"))
DUMPS = depth(3, 10)
#: Most dumps are small: the largest one takes as long as all others together.
NODES_MIN, NODES_MAX = depth((10, 60), (60, 1000))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.name)
def test_every_command_ends_as_documented_on_a_reported_case(path: Path, tmp_path: Path) -> None:
    names = (path.name, *_TOGETHER.get(path.name, ()))
    texts = [(_FOLDER / name).read_text() for name in names]
    file = tmp_path / path.name
    file.write_text("\n---\n".join(texts))
    check_every_command(Input.of_file(file), tmp_path)


@pytest.mark.timeout(0)
@pytest.mark.parametrize("seed", range(DUMPS))
def test_every_command_ends_as_documented_on_a_dump(seed: int, tmp_path: Path) -> None:
    nodes = NODES_MIN + round((NODES_MAX - NODES_MIN) * (seed / (DUMPS - 1)) ** 4)
    dump = draw_dump(seed, nodes)
    as_written = tmp_path / "dump.txt"
    as_written.write_text(dump.as_text())
    check_simulation(Input(as_written, dump.objects), tmp_path)
    # JSON is read ten times as fast as YAML.
    as_list = write_objects(tmp_path / "dump.json", {"kind": "List", "items": dump.objects})
    check_every_command(Input(as_list, dump.objects), tmp_path / "all", is_large=True)


def test_a_dump_is_drawn_from_its_seed_alone() -> None:
    assert draw_dump(3, 5).objects == draw_dump(3, 5).objects
    assert draw_dump(3, 5).objects != draw_dump(4, 5).objects


def test_commands_that_take_no_cluster_end_as_documented(tmp_path: Path) -> None:
    config = write_objects(
        tmp_path / "scheduler.yaml",
        {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"},
    )
    dump = tmp_path / "dump.json"
    dump.write_text(draw_dump(1, 5).as_text())
    succeeded("plugins", "--config", config)
    for command in ("check", "graph", "rbac"):
        succeeded("config", command, config)
    succeeded("config", "check", dump, codes=(2,))
    succeeded("compare", dump, "--config", config, "--processes", "0")
