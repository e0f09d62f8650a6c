"""Planted plugins whose signatures are too small, too large or invalid."""

from collections.abc import Hashable
from itertools import count
from typing import Any, final

import msgspec
import pytest

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import Caching, ScalarScorePlugin, SignPlugin
from bayplan.state.nodes import NodeInfo
from bayplan.state.pods import PodInfo
from bayplan.testing import CheckFailed, SampleCluster, check_plugin
from tests.testing.broken_plugins import SignsTooLittle, failure_of

POLICY = "test.org/v1 Policy"


def test_equal_signatures_with_different_results_are_detected_and_the_field_is_named() -> None:
    message = failure_of(SignsTooLittle)
    assert (
        "signs too little: two pods that differ in spec.tolerations have the signature" in message
    )


@final
class ReadsAnnotations(ScalarScorePlugin, SignPlugin):
    """Signs labels and reads an annotation."""

    name = "ReadsAnnotations"

    def score_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 100 if "test.org/fast" in pod.annotations else 0

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return tuple(sorted(pod.labels.items()))


def test_a_field_that_is_read_and_not_signed_is_named() -> None:
    message = failure_of(ReadsAnnotations)
    assert "reads metadata.annotations, which sign_pod does not look at" in message


@final
class ReadsRequests(ScalarScorePlugin, SignPlugin):
    """Signs containers only, and reads the sum of containers and overhead."""

    name = "ReadsRequests"

    def score_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return min(pod.requests.get("cpu", 0), 100)

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        containers = pod.spec.containers or ()
        return tuple(str(each.resources) for each in containers)


def test_one_source_field_does_not_sign_a_value_compiled_from_several() -> None:
    assert "reads requests, which sign_pod does not look at" in failure_of(ReadsRequests)


@final
class SignsTheName(ScalarScorePlugin, SignPlugin):
    """Signs the name, so that no two pods have equal signatures."""

    name = "SignsTheName"

    def score_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return len(pod.name) % 100

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return pod.name


def test_a_signature_with_the_name_is_detected() -> None:
    assert "sign_pod depends on metadata.name" in failure_of(SignsTheName)


@final
class SignsTheStatus(ScalarScorePlugin, SignPlugin):
    """Signs the nominated node of a pod."""

    name = "SignsTheStatus"

    def score_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 100 if pod.nominated_node_name == node.name else 0

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return pod.nominated_node_name


def test_a_signature_with_the_status_is_detected() -> None:
    assert "sign_pod depends on status" in failure_of(SignsTheStatus)


@final
class SignsAMap(ScalarScorePlugin, SignPlugin):
    """Signs a map, which is not hashable."""

    name = "SignsAMap"

    def score_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return len(pod.labels)

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        labels: Any = dict(pod.labels)
        return labels


def test_an_unhashable_signature_is_detected() -> None:
    assert "sign_pod returned what cannot be hashed" in failure_of(SignsAMap)


@final
class SignsNoneOfThose(ScalarScorePlugin, SignPlugin):
    """Reads annotations of pods with labels, and signs only pods without labels."""

    name = "SignsNoneOfThose"

    def score_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 100 if pod.labels and "test.org/fast" in pod.annotations else 0

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return None if pod.labels else ()


def test_every_field_of_an_unsigned_pod_may_be_read() -> None:
    check_plugin(SignsNoneOfThose, clusters=10)


@final
class SignsAll(ScalarScorePlugin, SignPlugin):
    """Signs the whole spec."""

    name = "SignsAll"

    def score_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return len(pod.spec.volumes or ())

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return msgspec.json.encode(pod.spec, order="deterministic")


def test_a_signature_of_the_whole_spec_passes() -> None:
    check_plugin(SignsAll, clusters=10)


# ---- signatures computed once per shape -----------------------------------------------------


class SignsOnce(ScalarScorePlugin, SignPlugin):
    """Scores all nodes equally, and promises that it signs the shape only."""

    caching = Caching(signs_template=True)

    def score_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 0


@final
class SignsOwnersOnce(SignsOnce):
    """Leaves pods without an owner unsigned."""

    name = "SignsOwnersOnce"

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return () if pod.metadata.owner_references else None


def test_fields_outside_of_the_shape_may_not_be_signed_once() -> None:
    message = failure_of(SignsOwnersOnce)
    assert (
        "the promise signs_template of its caching: sign_pod reads metadata.ownerReferences"
        in message
    )


@final
class SignsPoliciesOnce(SignsOnce):
    """Signs objects of its own kind."""

    name = "SignsPoliciesOnce"
    kinds = (POLICY,)

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return tuple(policy.metadata.name for policy in self.handle.objects(POLICY).list())


def test_cluster_objects_may_not_be_signed_once() -> None:
    numbers = count()

    def another_policy(over: SampleCluster) -> None:
        over.put(POLICY, {"metadata": {"name": f"policy-{next(numbers)}"}})

    with pytest.raises(CheckFailed) as failed:
        check_plugin(SignsPoliciesOnce, prepare=another_policy)
    assert "sign_pod depends on what else there is in the cluster" in str(failed.value)


@final
class SignsTheShape(SignsOnce):
    """Signs parts of the shape and the name of the node."""

    name = "SignsTheShape"

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return pod.namespace, pod.node_name, pod.shape.host_ports, pod.spec.priority


def test_the_shape_and_the_node_may_be_signed_once() -> None:
    check_plugin(SignsTheShape, clusters=3)


# ---- combinations of fields -----------------------------------------------------------------


@final
class SignsTheSum(ScalarScorePlugin, SignPlugin):
    """Reads two fields in one combination and signs them in another."""

    name = "SignsTheSum"

    def score_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 10 if self._both(pod) else 0

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        self._both(pod)
        return pod.priority > 0, pod.spec.host_network and pod.priority > 0

    def _both(self, pod: PodInfo) -> bool:
        return pod.priority < 0 and pod.spec.host_network is True


def test_fields_with_an_effect_in_combination_only_are_detected() -> None:
    assert "signs too little: two pods that differ in spec." in failure_of(SignsTheSum)
