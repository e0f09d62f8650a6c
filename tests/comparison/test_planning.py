"""From an experiment to its jobs."""

from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bayplan.comparison import extensions
from bayplan.comparison.experiment import ConfigurationSpec, InputSpec
from bayplan.comparison.metrics.scheduling import Arrivals
from bayplan.comparison.planning import parse_seeds, plan
from bayplan.sim.input.errors import InputError
from bayplan.sim.input.workload import Workload
from bayplan.state.pods import PodInfo
from tests.comparison.kit import cluster_file, configuration, pod_with_cpu, spec

# ---- planning -------------------------------------------------------------------------------


def wrong(experiment: Any) -> list[str]:
    with pytest.raises(InputError) as refused:
        plan(experiment, "e.yaml")
    return list(refused.value.lines)


def test_jobs_are_the_product_of_inputs_configurations_and_seeds(tmp_path: Path) -> None:
    result = plan(spec(tmp_path, seeds="3..5"), "e.yaml")
    assert [(job.configuration.name, job.seed) for job in result.jobs] == [
        (name, seed) for name in ("packed", "spread") for seed in (3, 4, 5)
    ]
    assert result.baseline == "packed"
    assert len({job.key for job in result.jobs}) == 6


def test_a_key_depends_on_the_run_and_not_on_its_name(tmp_path: Path) -> None:
    one = spec(tmp_path)
    renamed = tuple(
        ConfigurationSpec(name=f"{c.name} again", config=c.config) for c in one.configurations
    )
    other = msgspec.structs.replace(one, configurations=renamed)
    keys = [[job.key for job in plan(each, "e.yaml").jobs] for each in (one, other)]
    assert keys[0] == keys[1]


@pytest.mark.parametrize(
    "change",
    [
        {"seeds": 1},
        {"metrics": ("placed",)},
        {"topology_keys": ("rack",)},
        {"configurations": (ConfigurationSpec(name="packed"),)},
    ],
)
def test_another_run_has_another_key(tmp_path: Path, change: dict[str, Any]) -> None:
    one, other = spec(tmp_path), spec(tmp_path, **change)
    assert plan(one, "e").jobs[0].key != plan(other, "e").jobs[0].key


def test_another_workload_has_another_key(tmp_path: Path) -> None:
    one = plan(spec(tmp_path), "e").jobs[0].key
    file = tmp_path / "cluster.json"
    file.write_text(file.read_text().replace("64Gi", "32Gi"))
    experiment = spec(tmp_path / "..", inputs=(InputSpec(paths=(str(file),)),))
    assert plan(experiment, "e").jobs[0].key != one


def test_invalid_names_are_reported_at_once(tmp_path: Path) -> None:
    config = ConfigurationSpec(name="a", config=configuration("MostAllocated"))
    experiment = spec(
        tmp_path,
        configurations=(config, config),
        baseline="b",
        metrics=("placd",),
        seeds="x",
        inputs=(),
        plugins=(str(tmp_path / "none.py"),),
    )
    assert wrong(experiment) == [
        'e.yaml: spec.seeds: found "x", wanted seeds such as 0..9, or 1,2,5',
        "e.yaml: spec.inputs: found nothing, wanted an input here, or --nodes and --pods",
        'e.yaml: spec.configurations[1].name: found "a", wanted a name that no other has',
        'e.yaml: spec.baseline: found "b", wanted "a" or "a"',
        *[line for line in wrong(experiment) if "spec.metrics[0]" in line],
        f"{tmp_path / 'none.py'}: cannot be read: No such file or directory",
    ]
    [metric] = [line for line in wrong(experiment) if "spec.metrics[0]" in line]
    assert metric.endswith('did you mean "placed"?')


def test_an_invalid_configuration_is_refused_before_any_run(tmp_path: Path) -> None:
    bad = configuration("MostAlocated")
    experiment = spec(tmp_path, configurations=(ConfigurationSpec(name="bad", config=bad),))
    [line] = wrong(experiment)
    assert line.startswith("configuration bad: e.yaml: spec.configurations[0].config: profiles[0]")
    assert 'did you mean "MostAllocated"?' in line


def test_an_invalid_input_is_named(tmp_path: Path) -> None:
    experiment = spec(tmp_path, inputs=(InputSpec(name="small", paths=(str(tmp_path / "no"),)),))
    assert wrong(experiment) == [
        f"input small: {tmp_path / 'no'}: cannot be read: No such file or directory"
    ]


def test_nodes_that_are_referenced_by_name_are_not_renumbered(tmp_path: Path) -> None:
    arrivals = Arrivals(nodes_renumbered=True)
    assert len(plan(spec(tmp_path, arrivals=arrivals), "e").jobs) == 2
    placed = pod_with_cpu("running")
    placed["spec"]["nodeName"] = "n1"
    experiment = spec(tmp_path, arrivals=arrivals)
    cluster_file(tmp_path, placed)
    [line] = wrong(experiment)
    assert line == (
        "e.yaml: spec.arrivals.nodesRenumbered: found Pod default/running, "
        "wanted an input in which nothing names a node"
    )


def with_a_map(pods: list[PodInfo]) -> list[dict[str, Any]]:
    data = {"pods": ",".join(pod.key for pod in pods)}
    metadata = {"name": "m", "namespace": "default"}
    return [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}]


def test_a_preparation_adds_objects_derived_from_the_pods(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    point = EntryPoint("maps", "tests.comparison.test_planning:with_a_map", "")
    brought = {extensions.PREPARATIONS_GROUP: [point]}
    monkeypatch.setattr(extensions, "entry_points", lambda group: brought.get(group, []))
    job = plan(spec(tmp_path, prepare=("maps",)), "e").jobs[0]
    added = msgspec.json.decode(job.workload, type=Workload).initial[0]
    assert added["data"] == {"pods": "default/p0,default/p1,default/p2,default/p3"}


def test_an_unknown_preparation_is_refused(tmp_path: Path) -> None:
    [line] = wrong(spec(tmp_path, prepare=("nobodys",)))
    assert line.startswith('e.yaml: spec.prepare[0]: found "nobodys", wanted ')


# ---- seeds ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "seeds"),
    [
        ("0..3", (0, 1, 2, 3)),
        ("42", (42,)),
        ("5, 1..2, 5", (5, 1, 2)),
        (7, (7,)),
        ([3, 1], (3, 1)),
        (["0..1", 9], (0, 1, 9)),
    ],
)
def test_ranges_and_lists_of_seeds_are_read_in_order_without_duplicates(
    value: object, seeds: tuple[int, ...]
) -> None:
    assert parse_seeds(value, "seeds") == (seeds, [])


@pytest.mark.parametrize(
    "value", ["", "a", "3..1", "1...2", "-1", -1, True, None, 1.5, "0..999999"]
)
def test_invalid_seeds_are_refused_with_their_path(value: object) -> None:
    seeds, [problem] = parse_seeds(value, "spec.seeds")
    assert seeds == ()
    assert str(problem).startswith("spec.seeds: found ")
