"""PodTopologySpreadArgs: constraints for pods that have none of their own."""

from collections.abc import Iterable

from bayplan.api.objects import HOSTNAME_LABEL, ZONE_LABEL, TopologySpreadConstraint
from bayplan.api.selectors import is_label_key
from bayplan.framework.interface import PluginArgs

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
                found = ", ".join(_pair(constraint))
                yield path, f"{{{found}}} a second time; wanted each pair once"


def _problems(path: str, constraint: DefaultConstraint) -> Iterable[tuple[str, str]]:
    if not 0 < constraint.max_skew <= _MAX_SKEW_MAX:
        yield f"{path}.maxSkew", f"{constraint.max_skew}; wanted 1 to {_MAX_SKEW_MAX}"
    if not is_label_key(constraint.topology_key):
        yield f"{path}.topologyKey", f"{constraint.topology_key!r}; wanted a label key"
    if constraint.when_unsatisfiable not in (HARD, SOFT):
        found = constraint.when_unsatisfiable
        yield f"{path}.whenUnsatisfiable", f"{found!r}; wanted {HARD} or {SOFT}"
    if constraint.label_selector is not None:
        yield f"{path}.labelSelector", "a selector; wanted none, it is deduced for each pod"


def _pair(constraint: DefaultConstraint) -> tuple[str, str]:
    return constraint.topology_key, constraint.when_unsatisfiable
