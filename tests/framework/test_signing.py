"""Signatures: parts by plugin, one joint key, computed once per shape."""

import subprocess
import sys
from collections.abc import Hashable
from typing import Any, final

import pytest

from bayplan.framework.plugin import (
    Caching,
    PreEnqueuePlugin,
    PreFilterPlugin,
    ScalarFilterPlugin,
    ScalarScorePlugin,
    SignPlugin,
)
from bayplan.framework.signing import Signer
from bayplan.plugins.registry import in_tree_plugins
from bayplan.state.pods import PodInfo
from bayplan.testing import pod
from tests.framework.answering import made, plugins_of
from tests.framework.signature_keys import SetOfLabels, keys_of_many, signer_of


class Answering(ScalarFilterPlugin):
    def filter_node(self, state: Any, pod: Any, node: Any) -> None:
        return None


@final
class Noted(Answering, SignPlugin):
    """Signs a label and counts the calls."""

    name = "Noted"
    caching = Caching(signs_template=True)
    sign_count = 0

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        Noted.sign_count += 1
        return pod.labels.get("app")


@final
class Annotated(Answering, SignPlugin):
    """Signs a value that is not part of the shape."""

    name = "Annotated"

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return (pod.annotations.get("example.com/tier"),)


@final
class Silent(Answering):
    name = "Silent"


@final
class Failing(Answering, SignPlugin):
    name = "Failing"
    caching = Caching(signs_template=True)

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        raise ValueError("no")


@final
class Unhashable(Answering, SignPlugin):
    name = "Unhashable"
    caching = Caching(signs_template=True)

    def sign_pod(self, pod: PodInfo) -> Any:
        return ["a list"]


@final
class SortedLabels(ScalarScorePlugin, SignPlugin):
    """Signs a set, or the tuple of the same labels if the pod has the label ``tuple``."""

    name = "SortedLabels"
    caching = Caching(signs_template=True)

    def score_node(self, state: Any, pod: Any, node: Any) -> int:
        return 0

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return tuple(sorted(pod.labels)) if "tuple" in pod.labels else frozenset(pod.labels)


@final
class NarrowingOnly(PreFilterPlugin, PreEnqueuePlugin, SignPlugin):
    name = "NarrowingOnly"

    def pre_enqueue(self, pod: Any) -> None:
        return None

    def pre_filter(self, state: Any, pod: Any, nodes: Any) -> None:
        return None

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return (pod.namespace,)


# ---- parts ---------------------------------------------------------------------------------


def test_each_plugin_that_filters_or_scores_has_a_part() -> None:
    signed = signer_of(Noted, SetOfLabels, NarrowingOnly).sign(pod(labels={"app": "x"}))
    assert dict(signed.parts) == {
        "Noted": "x",
        "SetOfLabels": (frozenset({("app", "x")}),),
    }
    assert signed.unsigned == ()


def test_instances_of_one_class_have_a_part_each() -> None:
    signed = signer_of(made(Noted, "Noted/a"), made(Noted, "Noted/b")).sign(pod())
    assert list(signed.parts) == ["Noted/a", "Noted/b"]


@pytest.mark.parametrize("plugin", [Silent, Failing, Unhashable, Noted])
def test_a_plugin_that_does_not_sign_is_unsigned_and_all_other_plugins_are_signed(
    plugin: Any,
) -> None:
    signed = signer_of(plugin, Annotated).sign(pod())
    assert dict(signed.parts) == {plugin.name: None, "Annotated": (None,)}
    assert signed.unsigned == (plugin.name,)


# ---- the joint key -------------------------------------------------------------------------


def test_unsigned_parts_are_in_the_key_by_name() -> None:
    signer = signer_of(Noted, Annotated, Silent)
    assert signer.sign(pod()).key == (
        "bayplan",
        (("Annotated", (None,)),),
        ("Noted", "Silent"),
    )


def test_profiles_do_not_share_keys() -> None:
    one, other = plugins_of(Annotated), plugins_of(Annotated)
    other.profile_name = "another"
    assert Signer(one).sign(pod()).key != Signer(other).sign(pod()).key


def test_a_set_differs_from_the_tuple_that_represents_it() -> None:
    signer = signer_of(SortedLabels)
    as_tuple = signer.sign(pod(labels={"tuple": ""}))
    assert as_tuple.parts["SortedLabels"] == ("tuple",)
    of_set = signer.sign(pod(labels={"set": ""}))
    assert of_set.key != as_tuple.key
    assert of_set.key == ("bayplan", (("SortedLabels", (frozenset, ("set",))),), ())


def test_signatures_are_freed_with_their_pods() -> None:
    signer = signer_of(Noted)
    new_pod = pod(labels={"app": "live"})
    signed = signer.sign(new_pod)
    signer.sign(pod(labels={"app": "gone"}))
    assert list(signer._by_parts.values()) == [signed]  # pyright: ignore[reportPrivateUsage]


_SORTED_KEYS = """
from tests.framework.signature_keys import keys_of_many
print(keys_of_many())
"""


def test_keys_do_not_depend_on_the_hash_seed() -> None:
    reports = {
        subprocess.run(
            [sys.executable, "-c", _SORTED_KEYS],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert reports == {f"{keys_of_many()}\n"}


# ---- once per shape ------------------------------------------------------------------------


def test_pods_of_one_shape_are_signed_once() -> None:
    signer = signer_of(Noted)
    pods = [pod(f"p{n}", labels={"app": "once"}) for n in range(5)]
    before = Noted.sign_count
    assert len({signer.sign(each) for each in pods}) == 1
    assert Noted.sign_count == before + 1


def test_a_plugin_that_reads_beyond_the_shape_signs_each_pod() -> None:
    signer = signer_of(Annotated, Noted)
    one, other = (pod(annotations={"example.com/tier": tier}) for tier in ("gold", "iron"))
    assert one.shape is other.shape
    assert signer.sign(one).parts["Annotated"] == ("gold",)
    assert signer.sign(other).parts["Annotated"] == ("iron",)


def test_the_node_name_of_a_pod_is_signed_beside_its_shape() -> None:
    signer = signer_of(*(p for p in in_tree_plugins() if p.name == "NodeName"))
    unset, one, other = pod(), pod(node="n1"), pod(node="n2")
    assert unset.shape is one.shape
    assert len({signer.sign(each) for each in (unset, one, other)}) == 3


def test_plugins_that_only_reject_whole_pods_have_a_part() -> None:
    signer = signer_of(NarrowingOnly, Silent, Failing)
    results = [signer.part(name, pod()) for name in ("NarrowingOnly", "Silent", "Failing", "None")]
    assert results == [("default",), None, None, None]


def test_pods_with_equal_parts_share_one_signature() -> None:
    signer = signer_of(Noted)
    one = signer.sign(pod("one", labels={"app": "x", "other": "1"}))
    other = signer.sign(pod("other", labels={"app": "x", "other": "2"}))
    assert one is other
    assert one is not signer.sign(pod(labels={"app": "y", "other": "1"}))
