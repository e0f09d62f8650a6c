"""The signature of a pod in one profile: what the results of the plugins depend on (KEP-5598).

Each plugin that filters, scores or breaks ties gives its own part. Upstream joins the parts into
one text, and a single plugin that cannot sign leaves the whole pod without a signature. Here each
part stands by itself: a plugin that does not sign is evaluated for all nodes, and the others are
still cached.

There is one `PodSignature` object per key as long as some pod has it. Signatures are looked up and
compared by identity, so the size of the signed values does not matter.

A plugin that reads more than it signs gives one pod the results of another. `check_plugin` finds
such a plugin in tests; `strictSignatures` of a profile (`enforce_signature`) finds it in a running
scheduler, with the pods of that cluster. Each call then hands the plugin a stand-in of the pod that
records what is read, so attempts take several times as long.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, cast, final
from weakref import WeakValueDictionary

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import (
    FilterPlugin,
    Plugin,
    PreFilterPlugin,
    ScalarFilterPlugin,
    SignPlugin,
)
from bayplan.framework.profile import ProfilePlugins
from bayplan.framework.recorded_pod import Reads, recorded_pod
from bayplan.framework.score_sources import reads_of
from bayplan.ports import raise_interruption
from bayplan.state.change_log import Facet
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo, ShapeMemo

Parts = Mapping[str, Hashable | None]


@final
@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class PodSignature:
    """The values that the results of one profile's plugins for a pod depend on. Two signatures of
    one signer are equal only if they are the same object."""

    profile_name: str
    #: Instance → its part, in the order of the profile; None: the instance does not sign.
    parts: Parts

    @property
    def key(self) -> Hashable:
        """(profile, (instance, part) of each that signed, names of those that did not). Two
        signatures of a profile have equal keys if and only if they agree in all parts. The key
        contains sorted tuples in place of sets, so that its repr does not depend on the hashes of
        strings. Computed at each call: cycles compare signatures by identity."""
        signed = tuple(
            (name, _canonical(part)) for name, part in self.parts.items() if part is not None
        )
        return self.profile_name, signed, self.unsigned

    @property
    def unsigned(self) -> tuple[str, ...]:
        """Instances that do not sign, and are evaluated for all nodes."""
        return tuple(name for name, part in self.parts.items() if part is None)


@final
@dataclass(slots=True, eq=False)
class _OfShape:
    """The memo of one signer for all pods of one shape."""

    #: Instance → its part. For an instance that signs more than the shape: the part of the first
    #: pod.
    parts: Parts
    #: The newest parts of the instances that sign more than the shape, and the signature with these
    #: parts.
    source_parts: tuple[Hashable | None, ...]
    signature: PodSignature


@final
class Signer:
    """Signs pods for one profile."""

    def __init__(self, plugins: ProfilePlugins) -> None:
        self._profile_name = plugins.profile_name
        # A reader of other plugins' scores depends on more than it signs: it is not cached.
        self._signers = {
            plugin.instance_name: plugin
            for plugin in plugins.instances()
            if isinstance(plugin, SignPlugin)
            and plugin.caching is not None
            and not reads_of(plugin.args).names
        }
        answering: list[Plugin] = [
            *plugins.filter,
            *(plugin for plugin, _ in plugins.scoring()),
            *plugins.tie_break,
        ]
        #: Each instance once, in order.
        self._names = tuple({plugin.instance_name: None for plugin in answering})
        #: Instances that are called for each pod: their part depends on more than the shape.
        self._source_names = tuple(
            name
            for name in self._names
            if name in self._signers and not self._signers[name].promises.signs_template
        )
        #: Whether all pods of one shape, on no node, have the same signature.
        self.signs_templates = not self._source_names
        #: Instances that are called once per shape: their part is the same for all its pods.
        self._template_names = frozenset(self._names) - frozenset(self._source_names)
        #: By the parts in the order of the names.
        self._by_parts: WeakValueDictionary[Hashable, PodSignature] = WeakValueDictionary()
        self._memo = ShapeMemo[_OfShape]()

    def renew(self) -> None:
        """Ask the plugins again for the parts of each shape."""
        self._memo.forget()

    def sign(self, pod: PodInfo) -> PodSignature:
        """The joint signature. Instances that sign the shape are called once for all its pods."""
        if pod.node_name:
            return self._joint({name: self._part(name, pod) for name in self._names})
        of_shape = self._memo.once(pod.shape, lambda _: self._of_shape(pod))
        if self._source_names:
            source_parts = tuple([self._part(name, pod) for name in self._source_names])
            if source_parts != of_shape.source_parts:
                of_shape.signature = self._joint({**of_shape.parts, **self._named(source_parts)})
                of_shape.source_parts = source_parts
        return of_shape.signature

    def part(self, instance_name: str, pod: PodInfo) -> Hashable | None:
        """The part of any instance, including instances without Filter and Score; None: the
        instance does not sign the pod."""
        if instance_name in self._template_names and not pod.node_name:
            of_shape = self._memo.once(pod.shape, lambda _: self._of_shape(pod))
            return of_shape.parts[instance_name]
        return self._part(instance_name, pod)

    def _part(self, instance_name: str, pod: PodInfo) -> Hashable | None:
        signer = self._signers.get(instance_name)
        return None if signer is None else part_of(signer, pod)

    def _of_shape(self, pod: PodInfo) -> _OfShape:
        parts = {name: self._part(name, pod) for name in self._names}
        source_parts = tuple(parts[name] for name in self._source_names)
        return _OfShape(parts, source_parts, self._joint(parts))

    def _named(self, source_parts: tuple[Hashable | None, ...]) -> Parts:
        return dict(zip(self._source_names, source_parts, strict=True))

    def _joint(self, parts: Parts) -> PodSignature:
        in_order = tuple(parts.values())
        signature = self._by_parts.get(in_order)
        if signature is None:
            signature = PodSignature(self._profile_name, MappingProxyType(dict(parts)))
            self._by_parts[in_order] = signature
        return signature


def facets_read(plugin: Plugin, part: Hashable) -> Facet:
    """The parts of a node that the plugin's results for pods of this part depend on."""
    if isinstance(plugin, SignPlugin) and part == ():
        narrower = plugin.promises.facets_if_unconcerned
        return plugin.promises.facets if narrower is None else narrower
    return plugin.promises.facets


def followed_kinds(plugin: Plugin) -> tuple[str, ...]:
    """The kinds of objects that results depend on and whose changes do not change a row."""
    return tuple(kind for kind in plugin.kinds if kind not in plugin.promises.kinds_in_facets)


def follows_from_objects(plugin: Plugin, part: Hashable) -> bool:
    """Whether results for pods of this part depend on objects of these kinds."""
    if isinstance(plugin, SignPlugin) and part == ():
        return bool(followed_kinds(plugin)) and plugin.promises.facets_if_unconcerned is None
    return bool(followed_kinds(plugin))


def part_of(signer: SignPlugin, pod: PodInfo) -> Hashable | None:
    """One plugin's part of a signature; None: the plugin does not sign the pod.

    A `sign_pod` that raises, or that returns something unhashable, does not sign the pod. Upstream
    does the same.
    """
    try:
        part = signer.sign_pod(pod)
        hash(part)
    except BaseException as problem:  # noqa: BLE001 - a plugin that fails to sign is not cached
        raise_interruption(problem)
        return None
    return part


def ignores_pin(plugin: Plugin, pod: PodInfo, nodes: NodeView) -> bool:
    """Whether the plugin answers for the pod, whose PreFilter did not fail, as for the same pod
    without a `Pin`: nothing that decides about its answer reads the node affinity.

    For a plugin with scope "row" this is what it signs. One with scope "cluster" has an answer only
    if its PreFilter does not skip the pod.
    """
    reads = Reads()
    stand_in = recorded_pod(pod, reads)
    answers = isinstance(plugin, PreFilterPlugin | FilterPlugin | ScalarFilterPlugin)
    try:
        if plugin.concerns(stand_in.shape) and answers:
            if plugin.scope == "row":
                if not isinstance(plugin, SignPlugin) or part_of(plugin, stand_in) is None:
                    return False
            elif isinstance(plugin, PreFilterPlugin):
                plugin.pre_filter(CycleState(), stand_in, nodes)
    except BaseException as problem:  # noqa: BLE001 - a plugin that fails makes no promise
        raise_interruption(problem)
        return False
    return not reads.touches("spec.affinity.nodeAffinity")


def _canonical(part: Hashable) -> Hashable:
    """Equal parts in one form. A set is marked, so that it differs from a tuple."""
    if isinstance(part, frozenset):
        members = map(_canonical, cast("frozenset[Hashable]", part))
        return frozenset, tuple(sorted(members, key=repr))
    if type(part) is tuple:
        return tuple(map(_canonical, cast("tuple[Hashable, ...]", part)))
    return part


# ---- strict signatures ----------------------------------------------------------------------


#: The methods whose results are cached by signature. All are called with (state, pod, …).
SIGNED_METHODS: Final = (
    "pre_filter",
    "filter",
    "filter_node",
    "filter_row",
    "pre_score",
    "score",
    "score_node",
    "score_row",
    "normalize",
    "tie_break",
)


class UnsignedRead(Exception):
    """A plugin read a part of a pod that it does not sign."""

    def __init__(self, method: str, paths: list[str]) -> None:
        super().__init__(
            f"{method} reads {', '.join(paths)}, which sign_pod does not read: pods that differ "
            f"there get each other's results; sign it, or return None from sign_pod for such pods"
        )


def enforce_signature(plugin: Plugin) -> None:
    """Replace the instance's methods by calls that raise `UnsignedRead`.

    A plugin that does not sign is not restricted, nor is its call for a pod that it does not sign
    (`part_of` is None): such results are not cached.
    """
    if not isinstance(plugin, SignPlugin) or plugin.caching is None:
        return
    for name in SIGNED_METHODS:
        method = getattr(plugin, name, None)
        if method is not None:
            setattr(plugin, name, _StrictCall(plugin, name, method))


@final
class _StrictCall:
    """One method of one instance, called with a stand-in of the pod."""

    def __init__(self, plugin: SignPlugin, name: str, method: Callable[..., Any]) -> None:
        self._plugin = plugin
        self._name = name
        self._method = method

    def __call__(self, state: Any, pod: PodInfo, *arguments: Any) -> Any:
        signed, reads = Reads(), Reads()
        if part_of(self._plugin, recorded_pod(pod, signed)) is None:
            return self._method(state, pod, *arguments)
        result = self._method(state, recorded_pod(pod, reads), *arguments)
        unsigned = reads.beyond(signed)
        if unsigned:
            raise UnsignedRead(self._name, unsigned)
        return result
