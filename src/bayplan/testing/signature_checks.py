"""Checks of sign_pod: equal signatures must mean equal answers, for any nodes."""

from collections.abc import Callable, Hashable
from typing import Final

import msgspec

from bayplan.api.object_meta import OwnerReference
from bayplan.framework.plugin import Plugin, SignPlugin
from bayplan.framework.recorded_pod import SOURCES, Reads, recorded_pod
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo
from bayplan.testing.cases import PluginSubject, Scene
from bayplan.testing.evaluation import CheckFailed, ask
from bayplan.testing.factories import PodOptions, api_pod, pod
from bayplan.testing.generators import FIELD_DRAWS, draw_field

#: Pairs of pods that differ in a field that the plugin reads, and in any other field.
_PAIRS_PER_READ: Final = 2
_OTHER_PAIRS: Final = 3
#: The index of a cluster that no other check uses.
_ELSEWHERE: Final = -1


def signs_all_it_reads(subject: PluginSubject, scene: Scene) -> None:
    """The signature has everything that results depend on, or there is no signature."""
    plugin = scene.plugin
    if not isinstance(plugin, SignPlugin):
        return
    nodes = scene.cluster.lend().nodes
    for _, each in scene.pods:
        if _signature(subject, plugin, each) is None:
            continue
        signed = _reads(plugin.sign_pod, each)
        read = _reads(lambda other: ask(plugin, other, nodes), each)
        if signed is None or read is None:
            continue  # the pairs below do in any case
        unsigned = read.beyond(signed)
        if unsigned:
            raise subject.failed(
                f"reads {', '.join(unsigned)}, which sign_pod does not look at: pods that differ "
                f"there would get each other's answers; sign it, or return None for such pods"
            )


def _reads(look: Callable[[PodInfo], object], each: PodInfo) -> Reads | None:
    """The fields of a pod that were read; None if they cannot be recorded, as when a whole struct
    is encoded."""
    reads = Reads()
    try:
        look(recorded_pod(each, reads))
    except (CheckFailed, TypeError):
        return None
    return reads


def equal_signatures_equal_answers(subject: PluginSubject, scene: Scene) -> None:
    """Two pods that differ in one field and have equal signatures get equal results."""
    plugin = scene.plugin
    if not isinstance(plugin, SignPlugin):
        return
    nodes = scene.cluster.lend().nodes
    for options, each in scene.pods:
        reads = _reads(lambda other: ask(plugin, other, nodes), each) or Reads()
        read = [path for path in FIELD_DRAWS if reads.touches(path)] * _PAIRS_PER_READ
        other_paths = scene.draws.some(list(FIELD_DRAWS), _OTHER_PAIRS)
        for path in (*read, *other_paths):
            one = draw_field(scene.draws, path, options)
            pair = pod("one", **one), pod("other", **draw_field(scene.draws, path, one))
            compare_pair(subject, plugin, nodes, path, pair=pair)


def compare_pair(
    subject: PluginSubject,
    plugin: Plugin,
    nodes: NodeView,
    path: str,
    *,
    pair: tuple[PodInfo, PodInfo],
) -> bool:
    """Whether the results for two pods differ. ``path``: the field in which the pods differ. Raises
    CheckFailed."""
    signature, same = (_signature(subject, plugin, each) for each in pair)
    difference = ask(plugin, pair[0], nodes).difference(ask(plugin, pair[1], nodes))
    if difference and signature is not None and signature == same:
        raise subject.failed(
            f"signs too little: two pods that differ in {path} have the signature "
            f"{signature!r}, but get different answers: {difference}"
        )
    return bool(difference)


def signature_covers_what_is_read(subject: PluginSubject, scene: Scene) -> None:
    """Two pods with equal signatures get equal results, although everything outside the signature
    differs."""
    plugin = scene.plugin
    if not isinstance(plugin, SignPlugin):
        return
    nodes = scene.cluster.lend().nodes
    for options, each in scene.pods:
        if _signature(subject, plugin, each) is not None:
            steps = _drift(subject, scene, options, each)
            if steps and ask(plugin, each, nodes).difference(ask(plugin, steps[-1][1], nodes)):
                for path, other in steps:
                    compare_pair(subject, plugin, nodes, path, pair=(each, other))


def _drift(
    subject: PluginSubject, scene: Scene, options: PodOptions, each: PodInfo
) -> list[tuple[str, PodInfo]]:
    """(field, pod): fields are redrawn one by one, as long as the signature stays equal."""
    signature = _signature(subject, scene.plugin, each)
    steps: list[tuple[str, PodInfo]] = []
    for path in scene.draws.chance.sample(list(FIELD_DRAWS), len(FIELD_DRAWS)):
        changed = draw_field(scene.draws, path, options)
        other = pod("other", **changed)
        if _signature(subject, scene.plugin, other) == signature:
            steps.append((path, other))
            options = changed
    return steps


def signs_its_shape(subject: PluginSubject, scene: Scene) -> None:
    """A plugin with `signs_template` reads nothing else, whether it signs the pod or not."""
    plugin = scene.plugin
    if not isinstance(plugin, SignPlugin) or not plugin.promises.signs_template:
        return
    elsewhere = subject.instance(subject.scene(_ELSEWHERE).cluster)
    for _, each in scene.pods:
        reads = _reads(plugin.sign_pod, each) or Reads()
        beyond = sorted(filter(_is_beyond_shape, reads.paths))
        if beyond:
            raise subject.failed(
                f"breaks the promise signs_template of its caching: sign_pod reads "
                f"{', '.join(beyond)}: pods of one shape that differ there would get each other's "
                f"signature"
            )
        if _signature(subject, plugin, each) != _signature(subject, elsewhere, each):
            raise subject.failed(
                "breaks the promise signs_template of its caching: sign_pod depends on what else "
                "there is in the cluster: what it signed once would never be asked for again"
            )


def _is_beyond_shape(path: str) -> bool:
    of_shape = path.startswith("spec.") or path in SOURCES
    return not of_shape and path not in ("metadata.namespace", "metadata.labels")


def signs_only_what_pods_share(subject: PluginSubject, scene: Scene) -> None:
    """Name, uid, times, owners, annotations and status are not in any signature."""
    plugin = scene.plugin
    if not isinstance(plugin, SignPlugin):
        return
    for options, each in scene.pods:
        signature = _signature(subject, plugin, each)
        content = api_pod("another", **options)
        for path, changes in _UNSHARED.items():
            metadata = msgspec.structs.replace(content.metadata, **changes)
            other = msgspec.structs.replace(
                each,
                key=f"{each.namespace}/{metadata.name}",
                uid=metadata.uid or "",
                metadata=metadata,
                status=content.status,
            )
            _compare_unshared(subject, plugin, signature, other, path=path)
        status = msgspec.structs.replace(
            content.status, phase="Pending", nominated_node_name="node-1"
        )
        other = msgspec.structs.replace(each, status=status)
        _compare_unshared(subject, plugin, signature, other, path="status")


_UNSHARED: Final = {
    "metadata.name": {},
    "metadata.uid": {"uid": "another-uid"},
    "metadata.creationTimestamp": {"creation_timestamp": "2026-01-01T00:00:00Z"},
    "metadata.annotations": {"annotations": {"example.com/note": "another"}},
    "metadata.resourceVersion": {"resource_version": "77"},
    "metadata.ownerReferences": {
        "owner_references": (OwnerReference(kind="ReplicaSet", name="web", controller=True),)
    },
}


def _compare_unshared(
    subject: PluginSubject, plugin: Plugin, signature: Hashable, other: PodInfo, *, path: str
) -> None:
    if _signature(subject, plugin, other) != signature:
        raise subject.failed(
            f"sign_pod depends on {path}: it may depend on namespace, labels and spec only, or no "
            f"pod would ever be like another; return None where an answer needs more"
        )


def _signature(subject: PluginSubject, plugin: Plugin, each: PodInfo) -> Hashable:
    """Raises CheckFailed for a value that cannot be looked up."""
    assert isinstance(plugin, SignPlugin)
    signature = plugin.sign_pod(each)
    try:
        hash(signature)
    except TypeError as problem:
        raise subject.failed(f"sign_pod returned what cannot be hashed: {problem}") from problem
    return signature
