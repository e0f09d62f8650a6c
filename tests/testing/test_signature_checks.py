"""Planted plugins whose signatures are too small, too large or invalid."""

from collections.abc import Callable, Hashable
from itertools import count
from typing import Any, final

import msgspec
import pytest

from bayplan.framework.plugin import Caching, Plugin, ScalarScorePlugin, SignPlugin
from bayplan.state.nodes import NodeInfo
from bayplan.state.pods import PodInfo
from bayplan.testing import SampleCluster, check_plugin
from tests.framework.answering import answering
from tests.testing.broken_plugins import SignsTooLittle, failure_of

POLICY = "test.org/v1 Policy"


def signing(
    sign_pod: Callable[[PodInfo], Any], score: Callable[[PodInfo, NodeInfo], int]
) -> type[Plugin]:
    """A plugin with a signature and scores."""
    return answering(
        "Signs", sign_pod=sign_pod, score_node=lambda state, pod, node: score(pod, node)
    )


def is_fast(pod: PodInfo) -> int:
    return 100 if "test.org/fast" in pod.annotations else 0


def by_status(pod: PodInfo, node: NodeInfo) -> int:
    return 100 if pod.nominated_node_name == node.name else 0


def low_and_on_the_host(pod: PodInfo) -> bool:
    return pod.priority < 0 and pod.spec.host_network is True


def signs_the_sum(pod: PodInfo) -> Hashable:
    """Read two fields in one combination and sign them in another."""
    low_and_on_the_host(pod)
    return pod.priority > 0, pod.spec.host_network and pod.priority > 0


def resources_of(pod: PodInfo) -> Hashable:
    """Those of the containers, without the overhead."""
    return tuple(str(each.resources) for each in pod.spec.containers or ())


WRONG = [
    pytest.param(
        SignsTooLittle,
        "signs too little: two pods that differ in spec.tolerations have the signature",
        id="equal signatures have different results",
    ),
    pytest.param(
        signing(lambda pod: tuple(sorted(pod.labels.items())), lambda pod, node: is_fast(pod)),
        "reads metadata.annotations, which sign_pod does not look at",
        id="a field is read and not signed",
    ),
    pytest.param(
        signing(resources_of, lambda pod, node: min(pod.requests.get("cpu", 0), 100)),
        "reads requests, which sign_pod does not look at",
        id="one source field is signed, and a value is read that is compiled from several",
    ),
    pytest.param(
        signing(lambda pod: pod.name, lambda pod, node: len(pod.name) % 100),
        "sign_pod depends on metadata.name",
        id="the name is signed",
    ),
    pytest.param(
        signing(lambda pod: pod.nominated_node_name, by_status),
        "sign_pod depends on status",
        id="the status is signed",
    ),
    pytest.param(
        signing(lambda pod: dict(pod.labels), lambda pod, node: len(pod.labels)),
        "sign_pod returned what cannot be hashed",
        id="a signature cannot be hashed",
    ),
    pytest.param(
        signing(signs_the_sum, lambda pod, node: 10 * low_and_on_the_host(pod)),
        "signs too little: two pods that differ in spec.",
        id="fields have an effect in combination only",
    ),
]


@pytest.mark.parametrize(("plugin_class", "words"), WRONG)
def test_a_wrong_signature_is_detected_and_named(plugin_class: type[Plugin], words: str) -> None:
    assert words in failure_of(plugin_class)


def signs_without_labels(pod: PodInfo) -> Hashable:
    return None if pod.labels else ()


def signs_the_spec(pod: PodInfo) -> Hashable:
    return msgspec.json.encode(pod.spec, order="deterministic")


@pytest.mark.parametrize(
    "plugin_class",
    [
        pytest.param(
            signing(signs_without_labels, lambda pod, node: is_fast(pod) if pod.labels else 0),
            id="every field of an unsigned pod may be read",
        ),
        pytest.param(
            signing(signs_the_spec, lambda pod, node: len(pod.spec.volumes or ())),
            id="the whole spec may be signed",
        ),
    ],
)
def test_a_sufficient_signature_passes(plugin_class: type[Plugin]) -> None:
    check_plugin(plugin_class, clusters=10)


# ---- signatures computed once per shape -----------------------------------------------------


class SignsOnce(ScalarScorePlugin, SignPlugin):
    """Scores all nodes equally, and promises that it signs the shape only."""

    caching = Caching(signs_template=True)

    def score_node(self, state: Any, pod: PodInfo, node: NodeInfo) -> int:
        return 0


@final
class SignsOwnersOnce(SignsOnce):
    """Leaves pods without an owner unsigned."""

    name = "SignsOwnersOnce"

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return () if pod.metadata.owner_references else None


def test_fields_outside_of_the_shape_may_not_be_signed_once() -> None:
    words = "the promise signs_template of its caching: sign_pod reads metadata.ownerReferences"
    assert words in failure_of(SignsOwnersOnce)


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

    message = failure_of(SignsPoliciesOnce, prepare=another_policy)
    assert "sign_pod depends on what else there is in the cluster" in message


@final
class SignsTheShape(SignsOnce):
    """Signs parts of the shape and the name of the node."""

    name = "SignsTheShape"

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return pod.namespace, pod.node_name, pod.shape.host_ports, pod.spec.priority


def test_the_shape_and_the_node_may_be_signed_once() -> None:
    check_plugin(SignsTheShape, clusters=3)
