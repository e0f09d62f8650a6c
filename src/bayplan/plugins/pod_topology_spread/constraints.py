"""The spreading constraints of a pod: its own, or the configured defaults, compiled.

Own constraints follow from the pod's shape and are compiled once for it. The defaults apply to a
pod without own constraints that Services select or a controller owns. Their selectors together say
which pods count. A change of a Service may change that, so the result is cached per shape together
with the objects that it came from. Upstream: podtopologyspread/common.go, helper.DefaultSelector.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Final, final
from weakref import WeakKeyDictionary

from msgspec import Struct

from bayplan.api.object_meta import controller_of
from bayplan.api.objects import (
    HOSTNAME_LABEL,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    SERVICE,
    STATEFUL_SET,
    ZONE_LABEL,
    LabelSelector,
    Service,
    TopologySpreadConstraint,
)
from bayplan.api.selectors import (
    IN,
    Requirement,
    Selector,
    SelectorError,
    is_label_key,
    label_selector,
    map_selector,
    with_requirements,
)
from bayplan.framework.handle import Handle
from bayplan.framework.plugin import PluginArgs
from bayplan.state.domain_counts import PodSet
from bayplan.state.pods import PodInfo, PodShape

# ---- args -----------------------------------------------------------------------------------


HARD = "DoNotSchedule"
SOFT = "ScheduleAnyway"

SYSTEM_DEFAULTING = "System"
LIST_DEFAULTING = "List"

_MAX_SKEW_MAX = 2**31 - 1


class DefaultConstraint(TopologySpreadConstraint, frozen=True, forbid_unknown_fields=True):
    """A constraint as a pod may have it, but without a selector."""


#: What DefaultingType System stands for.
SYSTEM_CONSTRAINTS = (
    DefaultConstraint(max_skew=3, topology_key=HOSTNAME_LABEL, when_unsatisfiable=SOFT),
    DefaultConstraint(max_skew=5, topology_key=ZONE_LABEL, when_unsatisfiable=SOFT),
)


class PodTopologySpreadArgs(PluginArgs, frozen=True):
    """Defaults for pods without constraints; they are applied to the pods that the Services and
    the owner of such a pod select. Upstream: ValidatePodTopologySpreadArgs."""

    default_constraints: tuple[DefaultConstraint, ...] | None = None
    defaulting_type: str | None = None

    @property
    def is_system_defaulting(self) -> bool:
        return (self.defaulting_type or SYSTEM_DEFAULTING) == SYSTEM_DEFAULTING

    def constraints(self) -> tuple[DefaultConstraint, ...]:
        """The defaults in force."""
        return SYSTEM_CONSTRAINTS if self.is_system_defaulting else self.default_constraints or ()

    def problems(self) -> Iterable[tuple[str, str]]:
        constraints = self.default_constraints or ()
        if not self.is_system_defaulting and self.defaulting_type != LIST_DEFAULTING:
            yield "defaultingType", f"{self.defaulting_type!r}; wanted System or List"
        elif self.is_system_defaulting and constraints:
            yield "defaultingType", "System; wanted List, since defaultConstraints are given"
        for index, constraint in enumerate(constraints):
            path = f"defaultConstraints[{index}]"
            yield from _problems(path, constraint)
            if any(_pair(constraint) == _pair(former) for former in constraints[:index]):
                pair = ", ".join(_pair(constraint))
                yield path, f"{{{pair}}} a second time; wanted each pair once"


def _problems(path: str, constraint: DefaultConstraint) -> Iterable[tuple[str, str]]:
    if not 0 < constraint.max_skew <= _MAX_SKEW_MAX:
        yield f"{path}.maxSkew", f"{constraint.max_skew}; wanted 1 to {_MAX_SKEW_MAX}"
    if not is_label_key(constraint.topology_key):
        yield f"{path}.topologyKey", f"{constraint.topology_key!r}; wanted a label key"
    if constraint.when_unsatisfiable not in (HARD, SOFT):
        policy = constraint.when_unsatisfiable
        yield f"{path}.whenUnsatisfiable", f"{policy!r}; wanted {HARD} or {SOFT}"
    if constraint.label_selector is not None:
        yield f"{path}.labelSelector", "a selector; wanted none, it is deduced for each pod"


def _pair(constraint: DefaultConstraint) -> tuple[str, str]:
    return constraint.topology_key, constraint.when_unsatisfiable


# ---- constraints ----------------------------------------------------------------------------


_HONOR = "Honor"
_OWNER_KINDS = (REPLICATION_CONTROLLER, REPLICA_SET, STATEFUL_SET)

#: Kinds that defaults are deduced from.
SELECTING_KINDS = (SERVICE, *_OWNER_KINDS)


class Constraint(Struct, frozen=True):
    """One constraint on one pod shape, its defaults filled in."""

    topology_key: str
    max_skew: int
    min_domains: int
    #: Nodes that the pod's node selector and required node affinity exclude are not counted.
    honors_affinity: bool
    #: Nodes with taints that the pod does not tolerate are not counted.
    honors_taints: bool
    selector: Selector
    #: The placed pods that count. None: an empty selector counts no pod before 1.38, although it
    #: matches every pod where a single pod is checked.
    pods: PodSet | None
    #: 1 if the pod itself matches, else 0.
    self_match_count: int


class Constraints(Struct, frozen=True):
    """Those of one kind, hard or soft; ``error``: one of them does not parse."""

    constraints: tuple[Constraint, ...] = ()
    error: str | None = None


NO_CONSTRAINTS: Final = Constraints()


@final
class SpreadRules:
    """Says what each pod is held to, as one profile is configured."""

    def __init__(self, args: PodTopologySpreadArgs, handle: Handle) -> None:
        defaults = args.constraints()
        self._defaults = Defaults(defaults, handle)
        self.has_defaults: Final = bool(defaults)
        self._has_hard_defaults = any(d.when_unsatisfiable == HARD for d in defaults)
        self._has_soft_defaults = any(d.when_unsatisfiable == SOFT for d in defaults)
        self._requires_all_by_default = not args.is_system_defaulting
        counts_all = handle.behaviour.empty_spread_selector_counts_all
        reads_keys = handle.gates.enabled("MatchLabelKeysInPodTopologySpread")
        own = partial(_own, counts_all=counts_all, reads_keys=reads_keys)
        self._own_hard = partial(own, HARD)
        self._own_soft = partial(own, SOFT)
        self._hard_key = ("PodTopologySpread.hard", counts_all, reads_keys)
        self._soft_key = ("PodTopologySpread.soft", counts_all, reads_keys)

    def hard(self, pod: PodInfo) -> Constraints:
        if has_own(pod):
            return pod.shape.once(self._hard_key, self._own_hard)
        return self._defaults.of(pod).hard if self._has_hard_defaults else NO_CONSTRAINTS

    def soft(self, pod: PodInfo) -> Constraints:
        if has_own(pod):
            return pod.shape.once(self._soft_key, self._own_soft)
        return self._defaults.of(pod).soft if self._has_soft_defaults else NO_CONSTRAINTS

    def requires_all_topologies(self, pod: PodInfo) -> bool:
        """Whether scoring leaves out nodes without all the labels.

        With the system's defaults it does not: hostnames are worth spreading over where there are
        no zones.
        """
        return self._requires_all_by_default or has_own(pod)


def has_own(pod: PodInfo) -> bool:
    return bool(pod.spec.topology_spread_constraints)


# ---- own constraints -----------------------------------------------------------------------


def _own(action: str, shape: PodShape, *, counts_all: bool, reads_keys: bool) -> Constraints:
    """``counts_all``: whether an empty selector counts all pods, or none. ``reads_keys``: whether
    matchLabelKeys count."""
    stated = shape.spec.topology_spread_constraints or ()
    try:
        compiled = [
            _compiled(
                constraint,
                shape,
                _own_selector(constraint, shape, reads_keys=reads_keys),
                counts_all=counts_all,
            )
            for constraint in stated
            if constraint.when_unsatisfiable == action
        ]
    except SelectorError as problem:
        kind = "hard" if action == HARD else "soft"
        doing = f"obtaining pod's {kind} topology spread constraints"
        return Constraints(error=f"{doing}: {problem}")
    return Constraints(tuple(compiled))


def _own_selector(
    constraint: TopologySpreadConstraint, shape: PodShape, *, reads_keys: bool
) -> Selector:
    """With matchLabelKeys; the API server may have merged them already. Raises SelectorError."""
    selector = label_selector(constraint.label_selector)
    keys = constraint.match_label_keys or () if reads_keys else ()
    labels = shape.labels
    # As upstream, the pod's values are not checked once more.
    return with_requirements(
        selector, (Requirement(key, IN, (labels[key],)) for key in keys if key in labels)
    )


def _compiled(
    constraint: TopologySpreadConstraint,
    shape: PodShape,
    selector: Selector,
    *,
    counts_all: bool = False,
) -> Constraint:
    pods = PodSet(frozenset((shape.namespace,)), selector, with_terminating=False)
    min_domains = constraint.min_domains
    return Constraint(
        topology_key=constraint.topology_key,
        max_skew=constraint.max_skew,
        min_domains=1 if min_domains is None else min_domains,
        honors_affinity=constraint.node_affinity_policy in (None, _HONOR),
        honors_taints=constraint.node_taints_policy == _HONOR,
        selector=selector,
        pods=None if selector.is_everything and not counts_all else pods,
        self_match_count=int(selector.matches(shape.labels)),
    )


# ---- defaults ------------------------------------------------------------------------------


class DefaultConstraints(Struct, frozen=True):
    """The defaults for one shape, and what they were deduced from."""

    services: Sequence[Service] = ()
    owner_selector: Any = None
    hard: Constraints = NO_CONSTRAINTS
    soft: Constraints = NO_CONSTRAINTS


_NOT_SELECTED: Final = DefaultConstraints()


@final
class Defaults:
    """The configured constraints, for the pods that are selected by something."""

    def __init__(self, defaults: Sequence[TopologySpreadConstraint], handle: Handle) -> None:
        self._defaults = defaults
        self._handle = handle
        self._by_shape: WeakKeyDictionary[PodShape, DefaultConstraints] = WeakKeyDictionary()

    def of(self, pod: PodInfo) -> DefaultConstraints:
        listed: Sequence[Service] = self._handle.objects(SERVICE).list(pod.namespace)
        owner_selector = self._owner_selector(pod) if pod.metadata.owner_references else None
        if not listed and owner_selector is None:
            return _NOT_SELECTED
        services = list(listed)
        defaulted = self._by_shape.get(pod.shape)
        # Mostly they are the very same objects, which is what lists are compared by first.
        if defaulted is None or (defaulted.services, defaulted.owner_selector) != (
            services,
            owner_selector,
        ):
            defaulted = self._deduced(pod.shape, services, owner_selector)
            self._by_shape[pod.shape] = defaulted
        return defaulted

    def _owner_selector(self, pod: PodInfo) -> Any:
        """Of the controller that owns the pod: a plain map, a LabelSelector, or None."""
        owner = controller_of(pod.metadata)
        if owner is None:
            return None
        kind = f"{owner.api_version} {owner.kind}"
        if kind not in _OWNER_KINDS:
            return None
        workload = self._handle.objects(kind).get(owner.name, pod.namespace)
        return None if workload is None else workload.spec.selector

    def _deduced(
        self, shape: PodShape, services: Sequence[Service], owner_selector: Any
    ) -> DefaultConstraints:
        selector = _merged(shape, services, owner_selector)
        if selector.is_everything:
            return DefaultConstraints(services, owner_selector)
        hard, soft = (
            Constraints(
                tuple(
                    _compiled(constraint, shape, selector)
                    for constraint in self._defaults
                    if constraint.when_unsatisfiable == action
                )
            )
            for action in (HARD, SOFT)
        )
        return DefaultConstraints(services, owner_selector, hard, soft)


def _merged(shape: PodShape, services: Iterable[Service], owner_selector: Any) -> Selector:
    """Everything that the pod's Services and its owner demand of their pods."""
    demanded: dict[str, str] = {}
    for service in services:
        selector_labels = service.spec.selector
        # A Service without a selector selects nothing.
        if selector_labels is not None and selector_labels.items() <= shape.labels.items():
            demanded.update(selector_labels)
    if isinstance(owner_selector, LabelSelector):
        try:
            more = label_selector(owner_selector).requirements
        except SelectorError:
            more = ()
        return with_requirements(map_selector(demanded), more)
    return map_selector({**demanded, **(owner_selector or {})})
