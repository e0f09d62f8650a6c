"""Planted plugins that sign too little, too much, or what cannot be signed."""

from collections.abc import Hashable
from typing import Any, final

import msgspec
import pytest

from bayplan.framework.interface import (
    CycleState,
    Plugin,
    ScalarFilterPlugin,
    ScalarScorePlugin,
    SignPlugin,
)
from bayplan.framework.status import Status, unschedulable
from bayplan.state.nodes import NodeInfo
from bayplan.state.pods import PodInfo
from bayplan.testing import CheckFailed, check_plugin


def said_about(plugin_class: type[Plugin]) -> str:
    with pytest.raises(CheckFailed) as failed:
        check_plugin(plugin_class)
    return str(failed.value)


@final
class SignsTooLittle(ScalarFilterPlugin, SignPlugin):
    """Signs how many tolerations there are, and asks for what."""

    name = "SignsTooLittle"

    def filter_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        keys = {toleration.key for toleration in pod.shape.tolerations}
        return unschedulable("spot only") if "spot" in keys else None

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return len(pod.shape.tolerations)


def test_equal_signatures_with_different_answers_are_caught_and_the_field_is_named() -> None:
    said = said_about(SignsTooLittle)
    assert "signs too little: two pods that differ in spec.tolerations have the signature" in said


@final
class ReadsAnnotations(ScalarScorePlugin, SignPlugin):
    """Signs labels, and reads an annotation."""

    name = "ReadsAnnotations"

    def score_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 100 if "test.org/fast" in pod.annotations else 0

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return tuple(sorted(pod.labels.items()))


def test_a_field_that_is_read_and_not_signed_is_named() -> None:
    said = said_about(ReadsAnnotations)
    assert "reads metadata.annotations, which sign_pod does not look at" in said


@final
class ReadsRequests(ScalarScorePlugin, SignPlugin):
    """Signs containers only, and reads what they and the overhead come to."""

    name = "ReadsRequests"

    def score_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return min(pod.requests.get("cpu", 0), 100)

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        containers = pod.spec.containers or ()
        return tuple(str(each.resources) for each in containers)


def test_what_is_compiled_from_several_fields_is_not_signed_by_one_of_them() -> None:
    assert "reads requests, which sign_pod does not look at" in said_about(ReadsRequests)


@final
class SignsTheName(ScalarScorePlugin, SignPlugin):
    """No two pods alike."""

    name = "SignsTheName"

    def score_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return len(pod.name) % 100

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return pod.name


def test_a_signature_with_the_name_is_caught() -> None:
    assert "sign_pod depends on metadata.name" in said_about(SignsTheName)


@final
class SignsTheStatus(ScalarScorePlugin, SignPlugin):
    """Signs where a pod is nominated."""

    name = "SignsTheStatus"

    def score_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 100 if pod.nominated_node_name == node.name else 0

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return pod.nominated_node_name


def test_a_signature_with_the_status_is_caught() -> None:
    assert "sign_pod depends on status" in said_about(SignsTheStatus)


@final
class SignsAMap(ScalarScorePlugin, SignPlugin):
    """A map cannot be looked up."""

    name = "SignsAMap"

    def score_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return len(pod.labels)

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        labels: Any = dict(pod.labels)
        return labels


def test_a_signature_that_cannot_be_hashed_is_caught() -> None:
    assert "sign_pod returned what cannot be hashed" in said_about(SignsAMap)


@final
class SignsNoneOfThose(ScalarScorePlugin, SignPlugin):
    """Reads annotations of pods with labels, and signs only the others."""

    name = "SignsNoneOfThose"

    def score_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 100 if pod.labels and "test.org/fast" in pod.annotations else 0

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return None if pod.labels else ()


def test_a_pod_that_is_not_signed_may_be_read_at_will() -> None:
    check_plugin(SignsNoneOfThose)


@final
class SignsAll(ScalarScorePlugin, SignPlugin):
    """Signs the spec as a whole: nothing is left out."""

    name = "SignsAll"

    def score_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return len(pod.spec.volumes or ())

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return msgspec.json.encode(pod.spec, order="deterministic")


def test_a_spec_signed_as_a_whole_will_do() -> None:
    check_plugin(SignsAll)
