"""KEP-5598's consistency test: a field that changes a plugin's answer changes its signature part.

Pods are changed field by field, in drawn clusters; and pods that differ only in what no plugin
reads have one signature.
"""

from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st

from bayplan.api.object_meta import OwnerReference
from bayplan.framework.plugin import Plugin, SignPlugin
from bayplan.framework.recorded_pod import Reads, recorded_pod
from bayplan.framework.signing import Signer
from bayplan.plugins.registry import in_tree_plugins
from bayplan.rng import Stream
from bayplan.state.pods import PodInfo
from bayplan.testing import CheckFailed, api_pod, ask, pod
from bayplan.testing.cases import PluginSubject, Scene
from bayplan.testing.factories import PodOptions
from bayplan.testing.generators import FIELD_DRAWS, Draws, draw_field, draw_pod
from bayplan.testing.signature_checks import compare_pair
from tests.framework.answering import plugins_of
from tests.seeded import depth
from tests.testing.broken_plugins import SignsTooLittle
from tests.testing.variants import SIGNING

EXAMPLES = 200
CLUSTERS = depth(10, 30)

#: Fields that only the queue or the kubelet reads, or that no component reads.
UNREAD = (
    "metadata.annotations",
    "spec.priority",
    "spec.schedulingGates",
    "spec.preemptionPolicy",
    "spec.terminationGracePeriodSeconds",
)


#: The answers of these plugins depend on objects, features of nodes or a gate that drawn clusters
#: do not have.
NOT_DRAWN = {"DeferredPodScheduling", "DynamicResources", "NodeDeclaredFeatures"}

CHANGING = [each for each in SIGNING if each.values[0].name not in NOT_DRAWN]  # type: ignore[union-attr]


def read_fields(scene: Scene) -> list[str]:
    """Fields that the plugin reads of some pod."""
    names: set[str] = set()
    for _, each in scene.pods:
        reads = Reads()
        ask(scene.plugin, recorded_pod(each, reads), scene.cluster.lend().nodes)
        names |= {path for path in FIELD_DRAWS if reads.touches(path)}
    return sorted(names)


def changed_answers(
    plugin_class: type[Plugin],
    args: Any,
    drawing: settings | None = None,
    number: int | None = None,
) -> Counter[str]:
    """Field → number of examples where a change of it changed an answer. Raises CheckFailed.

    ``number``: the seed; None means the seed of this run.
    Pods are drawn from seeds: Hypothesis' own draws repeat values so often that it would take three
    times as many pods to show a difference.
    """
    subject = PluginSubject(plugin_class, args, (), None, seed=2)
    scenes = [subject.scene(index) for index in range(CLUSTERS)]
    fields = sorted({path for scene in scenes[:5] for path in read_fields(scene)})
    reports = Counter[str]()

    @(drawing or settings(max_examples=EXAMPLES))
    @given(
        scene=st.sampled_from(range(CLUSTERS)),
        path=st.one_of(st.sampled_from(fields), st.sampled_from(list(FIELD_DRAWS))),
        chance=st.randoms(use_true_random=True),
    )
    def change(scene: int, path: str, chance: Stream) -> None:
        scene_pods = scenes[scene]
        draws = Draws(chance, scene_pods.draws.vocabulary)
        one = draw_pod(draws)
        pair = pod("one", **one), pod("other", **draw_field(draws, path, one))
        nodes = scene_pods.cluster.lend().nodes
        reports[path] += compare_pair(subject, scene_pods.plugin, nodes, path, pair=pair)

    (change if number is None else seed(number)(change))()
    return reports


@pytest.mark.parametrize(("plugin_class", "args"), CHANGING)
def test_a_field_that_changes_an_answer_changes_the_signature(
    plugin_class: type[Plugin], args: Any
) -> None:
    result = changed_answers(plugin_class, args)
    print(f"{plugin_class.name}: answers changed with {dict(+result)}")
    assert result.total() > 0


@pytest.mark.parametrize("number", range(3))
def test_a_plugin_that_signs_too_little_is_detected(number: int) -> None:
    """The examples are fixed, so that the detection does not depend on luck."""
    many_examples = settings(max_examples=5 * EXAMPLES, phases=(Phase.generate,))
    with pytest.raises(CheckFailed, match=r"signs too little: .* spec.tolerations"):
        changed_answers(SignsTooLittle, None, many_examples, number)


# ---- the whole profile ---------------------------------------------------------------------


@settings(max_examples=EXAMPLES)
@given(path=st.sampled_from(UNREAD), chance=st.randoms(use_true_random=False))
def test_pods_that_differ_in_what_no_plugin_reads_have_one_signature(
    path: str, chance: Stream
) -> None:
    draws = Draws(chance)
    one = draw_pod(draws)
    other = draw_field(draws, path, one)
    assert SIGNER.sign(pod("one", **one)) is SIGNER.sign(pod("other", **other))


@settings(max_examples=EXAMPLES)
@given(chance=st.randoms(use_true_random=False))
def test_identity_and_status_of_a_pod_are_in_no_signature(chance: Stream) -> None:
    options = draw_pod(Draws(chance))
    signed = SIGNER.sign(pod("one", **options))
    assert {SIGNER.sign(other) for other in relatives(options)} == {signed}


def relatives(options: PodOptions) -> list[PodInfo]:
    """Pods of the same template with another name, uid, age, owner and status."""
    new_pod = pod("other", **options)
    metadata = api_pod("another", **options).metadata
    owner = OwnerReference(kind="Job", name="work", uid="uid-work", controller=True)
    changes: list[dict[str, Any]] = [
        {"uid": "another"},
        {"creation_timestamp": "2026-02-03T04:05:06Z"},
        {"owner_references": (owner,)},
        {"resource_version": "99"},
        {"generation": 3},
        {"finalizers": ("example.com/wait",)},
        {"generate_name": "work-"},
    ]
    status = msgspec.structs.replace(new_pod.status, phase="Pending", nominated_node_name="node-1")
    renewed = msgspec.structs.replace(new_pod, status=status)
    return [
        new_pod,
        renewed,
        *(
            msgspec.structs.replace(
                new_pod,
                uid=change.get("uid", new_pod.uid),
                metadata=msgspec.structs.replace(metadata, **change),
            )
            for change in changes
        ),
    ]


SIGNER = Signer(plugins_of(*(p for p in in_tree_plugins() if issubclass(p, SignPlugin))))


def test_no_plugin_reads_fields_listed_as_unread() -> None:
    """A field that a plugin begins to read must be removed from the list above."""
    read = {
        path
        for plugin_class, args in (each.values for each in SIGNING)
        for path in read_fields(PluginSubject(plugin_class, args, (), None, seed=2).scene(0))  # type: ignore[arg-type]
    }
    assert read.isdisjoint(UNREAD)
