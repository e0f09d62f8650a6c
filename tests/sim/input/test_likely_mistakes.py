"""Remarks about amounts that are valid and probably a mistake, and values that lack quotes."""

from typing import Any

import pytest

from bayplan.sim.input.inputs import InputError, load_inputs
from tests.kit.manifests import Content, node, pod
from tests.sim.manifests import controller


def container(name: str = "c", **resources: Any) -> list[Content]:
    return [{"name": name, "image": "app", "resources": resources}]


def notes(*objects: Content) -> tuple[str, ...]:
    return load_inputs(objects).notes


@pytest.mark.parametrize(
    ("resource", "amount", "remark"),
    [
        ("memory", "512m", '512m is a part of a byte (m: thousandths); was "512Mi" meant?'),
        ("memory", "512", '512 is less than a megabyte; was "512Mi" meant?'),
        ("memory", 8, '8 is less than a megabyte; was "8Mi" meant?'),
        ("memory", "64k", "64k is less than a megabyte"),
        ("ephemeral-storage", "10m", '10m is a part of a byte (m: thousandths); was "10Mi" meant?'),
        ("cpu", 500, '500 are 500 cores; was "500m" meant?'),
        ("cpu", "100", '100 are 100 cores; was "100m" meant?'),
    ],
)
def test_an_amount_that_is_probably_a_mistake_gets_a_remark(
    resource: str, amount: Any, remark: str
) -> None:
    limited = pod("a", containers=container(requests={resource: amount}))
    place = f"object 1 (Pod default/a): spec.containers[0].resources.requests.{resource}"
    assert notes(limited) == (f"{place}: {remark}",)


@pytest.mark.parametrize(
    ("resource", "amount"),
    [
        ("memory", "512Mi"),
        ("memory", "1M"),
        ("memory", "0"),
        ("memory", 1000000),
        ("cpu", "500m"),
        ("cpu", "99"),
        ("cpu", "0.5"),
        ("example.com/gpu", "100"),
    ],
)
def test_an_amount_that_may_be_meant_gets_no_remark(resource: str, amount: Any) -> None:
    containers = container(requests={resource: amount}, limits={resource: amount})
    assert notes(pod("a", containers=containers)) == ()


def test_many_cores_are_meant_where_a_node_has_so_many() -> None:
    greedy = pod("a", containers=container(requests={"cpu": "128"}))
    large = node("large", status={"allocatable": {"cpu": "192", "pods": "110"}})
    assert notes(greedy, large) == ()
    assert len(notes(greedy, node("small"))) == 1


def test_the_same_mistake_of_many_objects_is_one_remark() -> None:
    pods = [pod(f"p{n}", containers=container(limits={"memory": "64m"})) for n in range(30)]
    [note] = notes(*pods)
    assert note.startswith("object 1 (Pod default/p0) and 29 more: ")


def test_templates_of_controllers_and_init_containers_are_looked_at() -> None:
    spec = {"containers": container(), "initContainers": container("i", requests={"memory": "1"})}
    deployment = controller("Deployment", template={"spec": spec}, replicas=0)
    [note] = notes(deployment)
    assert "spec.template.spec.initContainers[0].resources.requests.memory: 1 is less" in note


@pytest.mark.parametrize(
    ("content", "path"),
    [
        (pod("a", labels={"on": True}), "metadata.labels.on: found true"),
        (pod("a", annotations={"version": 1.1}), "metadata.annotations.version: found 1.1"),
        (pod("a", nodeSelector={"gpu": True}), "spec.nodeSelector.gpu: found true"),
        (
            pod(
                "a",
                containers=[{"name": "c", "image": "app", "env": [{"name": "ON", "value": True}]}],
            ),
            "spec.containers[0].env[0].value: found true",
        ),
        (
            pod("a", containers=[{"name": "c", "image": "app", "args": ["--port", 80]}]),
            "spec.containers[0].args[1]: found 80",
        ),
        (
            pod("a", initContainers=[{"name": "i", "image": "app", "command": [1]}]),
            "spec.initContainers[0].command[0]: found 1",
        ),
        (
            controller(
                "Deployment",
                template={
                    "spec": {
                        "containers": [
                            {"name": "c", "image": "app", "env": [{"name": "ON", "value": 1}]}
                        ]
                    }
                },
            ),
            "spec.template.spec.containers[0].env[0].value: found 1",
        ),
    ],
)
def test_a_value_without_quotes_is_refused_with_advice(content: Content, path: str) -> None:
    with pytest.raises(InputError) as problem:
        load_inputs([content])
    [line] = problem.value.lines
    assert line.endswith(f"{path}, wanted a string; quote it")
