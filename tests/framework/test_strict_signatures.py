"""A plugin with strict signatures fails where it reads a part of a pod that it does not sign."""

from collections.abc import Hashable
from typing import Any

import pytest

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import Caching, Plugin, ScalarFilterPlugin, SignPlugin
from bayplan.framework.signing import enforce_signature
from bayplan.framework.status import Status, unschedulable
from bayplan.state.change_log import Facet
from bayplan.state.nodes import NodeInfo
from bayplan.state.pods import PodInfo
from bayplan.testing import PluginAnswer, ask, node
from bayplan.testing.cases import PluginSubject
from tests.engine.kit import Engine, waiting_pod
from tests.testing.variants import SIGNING

TIER = "example.com/tier"


class TierFilter(ScalarFilterPlugin, SignPlugin):
    """Reads an annotation of the pod."""

    caching = Caching(facets=Facet.LABELS)

    def filter_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        tier = (pod.metadata.annotations or {}).get(TIER)
        return None if tier == node.labels.get("tier") else unschedulable("wrong tier")


class ReadsTier(TierFilter):
    name = "ReadsTier"

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return tuple(sorted(pod.labels.items()))


class SignsTier(TierFilter):
    name = "SignsTier"

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return (pod.metadata.annotations or {}).get(TIER, "")


class SignsNothing(TierFilter):
    name = "SignsNothing"

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return None


class FailsToSign(TierFilter):
    name = "FailsToSign"

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        raise ValueError("no signature")


class SignsUnhashable(TierFilter):
    name = "SignsUnhashable"

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        unhashable: Any = [pod.namespace]
        return unhashable


NODES = (node("n1", labels={"tier": "gold"}), node("n2"))
GOLD: Any = {"annotations": {TIER: "gold"}}


def engine_of(filter_class: type[Plugin], strict: bool) -> Engine:
    engine = Engine(
        plugins=[filter_class.name],
        classes=[filter_class],
        profile={"strictSignatures": strict},
    )
    engine.add(*NODES)
    return engine


def test_an_attempt_fails_where_a_filter_reads_an_unsigned_annotation() -> None:
    engine = engine_of(ReadsTier, strict=True)
    engine.add(waiting_pod("p", **GOLD))
    (note,) = engine.notes()
    assert "filter_node reads metadata.annotations, which sign_pod does not read" in note
    assert "ReadsTier" in note


@pytest.mark.parametrize("signing_class", [SignsTier, SignsNothing, FailsToSign, SignsUnhashable])
def test_a_filter_that_signs_the_annotation_or_nothing_decides(signing_class: type[Plugin]) -> None:
    engine = engine_of(signing_class, strict=True)
    engine.add(waiting_pod("p", **GOLD))
    assert engine.bound() == {"p": "n1"}


def test_without_strict_signatures_the_unsigned_annotation_is_read() -> None:
    engine = engine_of(ReadsTier, strict=False)
    engine.add(waiting_pod("p", **GOLD))
    assert engine.bound() == {"p": "n1"}


@pytest.mark.parametrize(("plugin_class", "args"), SIGNING)
def test_plugins_of_this_tree_read_only_what_they_sign(
    plugin_class: type[Plugin], args: Any
) -> None:
    subject = PluginSubject(plugin_class, args, (), None, seed=1)
    for index in range(3):
        scene = subject.scene(index)
        nodes = scene.cluster.lend().nodes
        expected = [ask(scene.plugin, each, nodes) for _, each in scene.pods]
        enforce_signature(scene.plugin)
        strict = [ask(scene.plugin, each, nodes) for _, each in scene.pods]
        assert not any(map(PluginAnswer.difference, expected, strict))
