"""Objects of an input, checked before anything runs."""

from typing import Any

import pytest

from bayplan.sim.input.errors import InputError, InputErrors
from bayplan.sim.input.object_checks import ObjectChecks, priority_class_name
from tests.adapters.manifests import container, pod, pod_group, priority_class
from tests.sim.manifests import controller, template

NAMED = {"name": "c", "namespace": "default"}


def lines(value: Any, *classes: str) -> list[str]:
    """What is wrong with a value, at place "here"."""
    errors = InputErrors()
    accepted = ObjectChecks(errors, classes).accepts(value, "here")
    try:
        errors.raise_if_any()
    except InputError as problem:
        assert not accepted
        return list(problem.lines)
    assert accepted
    return []


@pytest.mark.parametrize("value", [pod(), pod_group(), controller("Deployment"), controller("Job")])
def test_good_objects_are_accepted(value: Any) -> None:
    assert lines(value) == []


def test_a_bad_object_is_named_with_its_place() -> None:
    (line,) = lines(pod(containers=[container("1x")]))
    assert line == (
        "here (Pod default/web): spec.containers[0].resources.requests.cpu: "
        'found "1x", wanted a quantity such as 500m, 2 or 1Gi'
    )


def test_claims_of_volumes_and_devices_are_looked_at_too() -> None:
    volumes = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": {"volumeMode": "X"}}
    devices = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "spec": {"devices": {"requests": [{"name": "r"}]}},
    }
    found = [line for each in (volumes, devices) for line in lines({**each, "metadata": NAMED})]
    assert found == [
        (
            "here (PersistentVolumeClaim default/c): "
            'spec.volumeMode: found "X", wanted one of Filesystem, Block'
        ),
        (
            "here (ResourceClaim default/c): "
            "spec.devices.requests[0]: found nothing, wanted one of exactly and firstAvailable"
        ),
    ]


def test_what_is_no_object_is_told_without_a_name() -> None:
    expected = ["here: found a list, wanted an object with apiVersion, kind and metadata"]
    assert lines([]) == expected


def test_a_schedulers_configuration_is_sent_elsewhere() -> None:
    (line,) = lines({"apiVersion": "x/v1", "kind": "KubeSchedulerConfiguration"})
    assert "--config" in line


def test_a_controllers_template_is_checked() -> None:
    (line,) = lines(controller("Deployment", template=template(restartPolicy="Alway")))
    assert "(Deployment default/web): spec.template.spec.restartPolicy: " in line


# ---- priority classes -----------------------------------------------------------------------


def test_a_class_has_to_be_somewhere_in_the_input() -> None:
    assert lines(pod(priorityClassName="high"), "high") == []
    assert lines(pod(priorityClassName="system-node-critical")) == []
    assert lines(pod(priorityClassName="gone", priority=5)) == []
    (line,) = lines(pod(priorityClassName="hihg"), "high", "low")
    assert 'spec.priorityClassName: found "hihg"' in line
    assert 'did you mean "high"?' in line


def test_a_template_names_a_class_too() -> None:
    (line,) = lines(controller("Job", template=template(priorityClassName="gone")))
    assert "spec.template.spec.priorityClassName" in line


def test_names_of_classes_are_found() -> None:
    assert priority_class_name(priority_class("high", 1)) == "high"
    others: list[Any] = [pod(), None, [], {"kind": "PriorityClass"}]
    others.append({**priority_class("high", 1), "metadata": []})
    assert [priority_class_name(one) for one in others] == [None] * 5


# ---- our own annotations --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("annotations", "words"),
    [
        ({"bayplan.dev/duration": "30s", "bayplan.dev/when-done": "delete"}, None),
        (
            {"bayplan.dev/duration": "soon"},
            'metadata.annotations.bayplan.dev/duration: found "soon"',
        ),
        (
            {"bayplan.dev/when-done": "delet"},
            'found "delet", wanted one of succeed, delete; did you mean "delete"?',
        ),
    ],
)
def test_running_times_can_be_read(annotations: dict[str, str], words: str | None) -> None:
    for value in (
        pod(annotations=annotations),
        controller("Job", template=template(annotations=annotations)),
    ):
        found = lines(value)
        assert (found == []) if words is None else (words in found[0])


def test_depth_is_no_reason_to_fall_over() -> None:
    deep: Any = {}
    for _ in range(5000):
        deep = {"a": deep}
    assert lines({**pod_group(), "spec": deep}) == []
    assert len(lines(pod(affinity=deep))) <= 1
