"""Actions applied in advance become the steps of a workload."""

from typing import Any

import pytest

from bayplan.objects.keys import key_of
from bayplan.sim.input.errors import InputError, InputErrors
from bayplan.sim.input.object_checks import ObjectChecks
from bayplan.sim.input.scenario import Action
from bayplan.sim.input.timeline import StepSequence
from bayplan.sim.input.workload import Step, Verb
from tests.kit.manifests import node, pod, pod_group
from tests.sim.manifests import controller, owned

Did = tuple[Verb, Any, float]


def create(*values: Any, at: float = 0.0) -> list[Did]:
    return [(Verb.CREATE, value, at) for value in values]


def patch(value: Any, at: float = 1.0) -> list[Did]:
    return [(Verb.PATCH, value, at)]


def delete(value: Any, at: float = 2.0) -> list[Did]:
    return [(Verb.DELETE, value, at)]


class Played:
    """Actions, with their steps and problems."""

    def __init__(self, *did: Did, classes: tuple[str, ...] = ()) -> None:
        errors = InputErrors()
        self.timeline = StepSequence(ObjectChecks(errors, classes), errors)
        actions = [
            Action(at, verb, value, f"action {number}")
            for number, (verb, value, at) in enumerate(did)
        ]
        self.steps: list[Step] = list(self.timeline.steps(actions))
        self.wrong: list[str] = []
        try:
            errors.raise_if_any()
        except InputError as problem:
            self.wrong = list(problem.lines)

    def step_lines(self) -> list[str]:
        assert self.wrong == []
        return [f"{one.at_seconds:g} {one.verb} {one.key}" for one in self.steps]


NAMED = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}}
FLAT = {"kind": "Pod", "namespace": "default", "name": "web"}


def test_actions_become_steps() -> None:
    played = Played(*create(node("n1"), pod()), *patch(NAMED), *delete(FLAT))
    assert played.step_lines() == [
        "0 create Node n1",
        "0 create Pod default/web",
        "1 patch Pod default/web",
        "2 delete Pod default/web",
    ]


def test_a_patch_contains_all_fields_except_the_name_of_its_object() -> None:
    change = {
        **NAMED,
        "metadata": {"name": "web", "namespace": "default", "labels": {"a": None}},
        "spec": {"schedulingGates": None},
    }
    played = Played(*create(pod()), *patch(change))
    assert played.steps[1].content == {
        "metadata": {"labels": {"a": None}},
        "spec": {"schedulingGates": None},
    }


def test_nulls_are_dropped_from_created_objects() -> None:
    (step,) = Played(*create({**pod(), "spec": {**pod()["spec"], "affinity": None}})).steps
    assert "affinity" not in step.content["spec"]


def test_deletions_may_be_written_as_objects_or_flat_and_without_a_group() -> None:
    group = pod_group("g")
    for deletion in (
        {"kind": "PodGroup", "name": "g"},
        {"kind": "PodGroup", "metadata": {"name": "g", "namespace": "default"}},
        {"apiVersion": group["apiVersion"], "kind": "PodGroup", "name": "g"},
    ):
        assert len(Played(*create(group), *delete(deletion)).step_lines()) == 2
    assert (
        len(Played(*create(node("n1")), *delete({"kind": "Node", "name": "n1"})).step_lines()) == 2
    )


def test_an_object_may_be_created_again_after_its_deletion() -> None:
    played = Played(*create(pod()), *delete(FLAT), *create(pod(), at=3))
    assert played.step_lines()[-1] == "3 create Pod default/web"


# ---- refusals -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("did", "line"),
    [
        pytest.param(
            create(pod(), pod()),
            "action 1: Pod default/web is there already, from action 0",
            id="a duplicate name",
        ),
        pytest.param(
            create(pod()) + patch({**NAMED, "metadata": {"name": "wep"}}),
            "action 1: Pod default/wep is not there at that time; did you mean web?",
            id="a patch of a missing object",
        ),
        pytest.param(
            create(pod()) + delete(FLAT) + delete(FLAT),
            "action 2: Pod default/web is not there at that time",
            id="a repeated deletion",
        ),
        pytest.param(
            create(pod(namespace="other")) + delete(FLAT),
            "action 1: Pod default/web is not there at that time",
            id="another namespace",
        ),
        pytest.param(
            delete({"kind": "Pod"}),
            "action 0: name: found nothing, wanted a name",
            id="no name",
        ),
        pytest.param(
            delete({"name": "web"}),
            "action 0: kind: found nothing, wanted a name",
            id="no kind",
        ),
        pytest.param(
            patch(["web"]),
            "action 0: found a list, wanted a mapping with kind and name",
            id="not a mapping",
        ),
        pytest.param(
            create({"kind": "Pod"}),
            "action 0: apiVersion: found nothing, wanted a name such as v1",
            id="no object",
        ),
        pytest.param(
            create(pod()) + patch({**NAMED, "spec": {"nodeName": "n1"}}),
            'action 1 (Pod default/web): spec.nodeName: found "n1", '
            "wanted nothing: only a binding says where a pod goes",
            id="a patch of the node name",
        ),
    ],
)
def test_an_impossible_action_is_reported(did: list[Did], line: str) -> None:
    assert Played(*did).wrong[0] == line


def test_the_result_of_a_patch_must_be_valid() -> None:
    change = {"kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "x"}}}
    (line,) = Played(*create(node("n1")), *patch(change)).wrong
    assert line.startswith("action 1 (Node n1): status.allocatable.cpu: ")


def test_an_ambiguous_kind_without_a_group_is_an_error() -> None:
    other = {**pod_group("g"), "apiVersion": "scheduling.ming.io/v1"}
    (line,) = Played(
        *create(pod_group("g"), other), *delete({"kind": "PodGroup", "name": "g"})
    ).wrong
    assert "could be of scheduling.x-k8s.io/v1alpha1 or scheduling.ming.io/v1" in line


def test_a_deeply_nested_object_raises_no_exception() -> None:
    deep: Any = {}
    for _ in range(5000):
        deep = {"a": deep}
    (line,) = Played(*create({**pod_group(), "spec": deep})).wrong
    assert line == "action 0: is nested too deeply"


# ---- controllers ----------------------------------------------------------------------------


def test_a_controller_is_created_with_its_pods() -> None:
    lines = Played(*create(controller("Deployment", replicas=2), at=4)).step_lines()
    assert [line.partition("-")[0] for line in lines] == [
        "4 create Deployment default/web",
        "4 create ReplicaSet default/web",
        "4 create Pod default/web",
        "4 create Pod default/web",
    ]


def test_a_node_is_created_with_its_daemon_pods() -> None:
    played = Played(*create(controller("DaemonSet", "d"), node("n1")), *create(node("n2"), at=9))
    assert [line.partition("-")[0] for line in played.step_lines()] == [
        "0 create DaemonSet default/d",
        "0 create Node n1",
        "0 create Pod default/d",
        "9 create Node n2",
        "9 create Pod default/d",
    ]
    assert played.timeline.made["DaemonSet"] == 2


def test_the_later_pods_of_a_job_are_created_later() -> None:
    played = Played(*create(controller("Job", completions=3, uid="u1")))
    assert len(played.step_lines()) == 2
    assert len(played.timeline.followers["u1"]) == 2
    assert played.timeline.made["Job"] == 3
    assert len(played.timeline.made_for["Job"]) == 1


def test_a_deletion_includes_owned_objects() -> None:
    played = Played(
        *create(controller("Deployment"), pod("stranger")),
        *delete({"kind": "Deployment", "name": "web"}),
    )
    reports = [line.partition("-")[0] for line in played.step_lines() if " delete " in line]
    assert reports == [
        "2 delete Deployment default/web",
        "2 delete ReplicaSet default/web",
        "2 delete Pod default/web",
    ]
    assert key_of(pod("stranger")) in played.timeline.index


def test_owners_in_a_circle_are_deleted_once() -> None:
    one, other = pod_group("one"), pod_group("other")
    circle = owned(one, other, uid="o"), owned(other, one, uid="o")
    played = Played(*create(*circle), *delete({"kind": "PodGroup", "name": "one"}))
    assert len(played.step_lines()) == 4


def test_patched_controllers_are_recorded() -> None:
    change = {"kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 9}}
    played = Played(*create(controller("Deployment")), *patch(change))
    assert [key.name for key in played.timeline.patched_controllers] == ["web"]
