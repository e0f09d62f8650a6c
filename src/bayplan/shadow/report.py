"""ShadowReport: the answer of `bayplan shadow` as a value with a version.

Names and messages in it come from a cluster and may hold any characters; `text` prints them safely.
"""

from typing import Any, Literal

import msgspec
from msgspec import Struct

API_VERSION = "bayplan.dev/v1alpha1"
KIND = "ShadowReport"


class Value(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base of the parts of a report."""


class Decisions(Value, frozen=True, kw_only=True, omit_defaults=False):
    """How many bindings arrived, and how they compare.

    ``compared`` is the sum of ``best``, ``lower`` and ``rejected``.
    """

    compared: int
    #: No node had a higher total.
    best: int
    #: The node was feasible, and another node had a higher total.
    lower: int
    #: The node was not feasible.
    rejected: int
    #: Of ``lower`` and ``rejected``: the node is best on a state that a reordering of the bindings
    #: in flight allows.
    best_when_reordered: int
    #: ``best`` by ``compared``; null: nothing was compared.
    share_best: float | None
    #: The same with ``bestWhenReordered``.
    share_best_when_reordered: float | None
    #: Not compared: no attempt of the shadow reached the nodes.
    untried: int
    #: Not compared: learned from a list, so the order of the bindings is unknown.
    unordered: int
    #: Not compared: the pod was first seen with its node.
    first_seen_bound: int
    #: How many nodes had the highest total, in the median of the compared decisions.
    median_best_nodes: float | None


class Disagreement(Value, frozen=True, kw_only=True):
    """One decision that differs."""

    pod: str
    #: Seconds since the shadow's start.
    at_seconds: float
    result: Literal["lower", "rejected"]
    #: Where the pod is, and where Bayplan would have placed it; "": nowhere.
    node: str
    shadow_node: str
    best_nodes: int = 0
    feasible_nodes: int = 0
    #: By how much the total of the shadow's node is higher.
    points: int = 0
    #: Plugin → weighted score of the shadow's node minus that of the pod's node.
    plugin_points: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    #: The plugin that rejects the pod's node, and its message.
    plugin: str = ""
    message: str = ""
    #: Whether the node is best on a state that a reordering of the bindings in flight allows.
    best_when_reordered: bool = False


class Decision(Value, frozen=True, kw_only=True):
    """One decision that was judged, also one that agrees."""

    pod: str
    #: Seconds since the shadow's start.
    at_seconds: float
    node: str
    result: Literal["best", "lower", "rejected", "untried"]
    #: For ``lower`` and ``rejected``.
    disagreement: Disagreement | None = None


class PluginCount(Value, frozen=True, kw_only=True, omit_defaults=False):
    """Disagreements that no reordering explains, by plugin."""

    #: "" for what no plugin decides.
    plugin: str
    #: Decisions whose node it rejects.
    rejected: int
    #: Decisions for which it favours the shadow's node, and by how many points in all.
    favours_shadow: int
    points: int


class LongerWait(Value, frozen=True, kw_only=True):
    """A pod that the shadow would have placed earlier."""

    pod: str
    #: Since the pod was first seen.
    waited_seconds: float
    #: Since when the shadow would place it, without a break.
    fitted_seconds: float
    #: Where the shadow would have placed it first.
    shadow_node: str
    #: Where it is now; "": it waits.
    node: str = ""


class WaitingPods(Value, frozen=True, kw_only=True, omit_defaults=False):
    """The pods that wait, and those that waited longer than in the shadow."""

    #: Pods that waited for the scheduler at the end.
    pending: int
    #: Median time from a pod's first sight to its binding.
    median_seconds: float | None
    #: A wait counts as longer from this time on.
    longer_from_seconds: float
    longer: int
    #: The longest waits.
    pods: tuple[LongerWait, ...]
    left_out: int


class PolicyDecision(Value, frozen=True, kw_only=True):
    """One decision that the policy would have made otherwise."""

    pod: str
    at_seconds: float
    node: str
    #: The node that the policy chooses; "": none.
    policy_node: str
    #: Why the policy rejects the pod's node; "": it does not.
    message: str = ""


class Policy(Value, frozen=True, kw_only=True, omit_defaults=False):
    """What another configuration would have chosen, on the same states."""

    source: str
    compared: int
    #: The pod's node is one of the policy's best nodes.
    equal: int
    share_equal: float | None
    #: The policy would have left the pod pending.
    unplaced: int
    untried: int
    decisions: tuple[PolicyDecision, ...]
    left_out: int


class Relist(Value, frozen=True, kw_only=True, omit_defaults=False):
    """A list after the first one: the watch was lost for a time."""

    kind: str
    at_seconds: float
    #: Objects that differ from what was known: at least so many events were missed.
    changes: int


class Stream(Value, frozen=True, kw_only=True, omit_defaults=False):
    """What was read."""

    #: Kind → events, without those of the first lists.
    events: dict[str, int]
    #: At least so many events were missed: the changes that relists brought.
    missed_events: int
    relists: tuple[Relist, ...]
    relists_left_out: int
    #: "list v1 Node: reason" → how often it failed.
    failures: dict[str, int]
    #: Kind → why it is not read: the shadow decides without it.
    unreadable: dict[str, str]


class ShadowReport(Value, frozen=True, kw_only=True, omit_defaults=False):
    """The whole report."""

    api_version: str = API_VERSION
    kind: str = KIND
    source: str
    #: Names of the schedulers whose pods are compared.
    schedulers: tuple[str, ...]
    #: Start in RFC 3339, and duration.
    started_at: str
    seconds: float
    nodes: int
    decisions: Decisions
    disagreements: tuple[Disagreement, ...]
    disagreements_left_out: int
    plugins: tuple[PluginCount, ...]
    waiting: WaitingPods
    policy: Policy | None = None
    stream: Stream
    remarks: tuple[str, ...] = ()


def json_schema() -> dict[str, Any]:
    """A JSON schema of the report."""
    return msgspec.json.schema(ShadowReport)
