"""The entries of the verbs drain, cordon, uncordon, scale and evict of a scenario."""

from typing import Any

import pytest

from bayplan.problems import Problem
from bayplan.sim.input.scenario import Action, read_operation
from bayplan.sim.input.workload import Verb


def read(verb: Verb, value: Any) -> Any:
    return read_operation(Action(0.0, verb, value, "place"))


def test_a_node_or_a_pod_needs_no_kind() -> None:
    assert read(Verb.CORDON, {"name": "n1"}).patch == {"spec": {"unschedulable": True}}
    assert read(Verb.UNCORDON, {"name": "n1"}).patch == {"spec": {"unschedulable": False}}
    evicted = read(Verb.EVICT, {"metadata": {"name": "a", "namespace": "shop"}})
    assert (*evicted.name, evicted.patch) == ("", "Pod", "shop", "a", {})


def test_a_drain_has_the_flags_of_kubectl() -> None:
    flags = {"ignoreDaemonsets": True, "deleteEmptyDirData": False, "force": True}
    drained = read(Verb.DRAIN, {"name": "n1", **flags})
    assert drained.options == flags
    assert drained.patch == {"spec": {"unschedulable": True}}


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet"])
def test_a_scale_sets_the_replicas(kind: str) -> None:
    scaled = read(Verb.SCALE, {"kind": kind, "name": "web", "replicas": 0})
    assert scaled.patch == {"spec": {"replicas": 0}}


@pytest.mark.parametrize(
    ("verb", "value", "problem"),
    [
        (Verb.DRAIN, "n1", 'found "n1", wanted a mapping with kind and name'),
        (Verb.DRAIN, {}, "name: found nothing, wanted a name"),
        (Verb.DRAIN, {"name": "n1", "force": "yes"}, 'force: found "yes", wanted true or false'),
        (Verb.DRAIN, {"kind": "Pod", "name": "n1"}, 'kind: found "Pod", wanted Node'),
        (
            Verb.DRAIN,
            {"name": "n1", "ignoreDaemonSets": True},
            'force; did you mean "ignoreDaemonsets"?',
        ),
        (Verb.EVICT, {"kind": "Node", "name": "a"}, 'kind: found "Node", wanted Pod'),
        (
            Verb.SCALE,
            {"kind": "Deployment", "name": "web"},
            "replicas: found nothing, wanted a number from 0 to 1000000",
        ),
        (
            Verb.SCALE,
            {"kind": "Deployment", "name": "web", "replicas": -1},
            "replicas: found -1, wanted a number from 0 to 1000000",
        ),
        (
            Verb.SCALE,
            {"kind": "Deployment", "name": "web", "replicas": True},
            "replicas: found true, wanted a number from 0 to 1000000",
        ),
        (
            Verb.SCALE,
            {"kind": "Job", "name": "j", "replicas": 1},
            'kind: found "Job", wanted one of Deployment, ReplicaSet, ReplicationController, ',
        ),
    ],
)
def test_an_invalid_entry_is_reported(verb: Verb, value: Any, problem: str) -> None:
    result = read(verb, value)
    assert isinstance(result, Problem)
    assert problem in str(result)
