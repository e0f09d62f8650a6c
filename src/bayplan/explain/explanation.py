"""Explanation: the answer of `bayplan why` as a value with a version.

Names and messages in it come from a cluster and may hold any characters; `text` prints them safely.
"""

from typing import Any, Literal

import msgspec
from msgspec import Struct

from bayplan.model.picture import RunMoment

API_VERSION = "bayplan.dev/v1alpha1"
KIND = "Explanation"

#: What the answer is about the pod now. ``fits``: an attempt would place it. ``nominated``: it
#: waits for the end of victims. ``foreign``: another scheduler is responsible for it.
#: ``missing-node``: it names a node that does not exist. ``no-pods``: the question is about a
#: workload, which has no pods.
Result = Literal[
    "bound",
    "fits",
    "nominated",
    "waiting",
    "gated",
    "unschedulable",
    "error",
    "foreign",
    "ended",
    "missing-node",
    "no-pods",
]


class Value(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base of the parts of an explanation."""


class NodeDistance(Value, frozen=True, kw_only=True):
    """How far one node is from fitting."""

    node: str
    #: "lacks 500m", for example; "" if no distance can be measured.
    distance: str = ""


class Cause(Value, frozen=True, kw_only=True):
    """One reason, with the nodes that it keeps out."""

    #: The plugin that rejects; "" for what no plugin decides.
    plugin: str
    #: kube-scheduler's words.
    reason: str
    #: How many nodes it keeps out; 0: it rejects the pod as a whole.
    nodes: int = 0
    #: The node that is nearest to fitting.
    nearest: NodeDistance | None = None
    #: Some of the nodes, sorted.
    examples: tuple[str, ...] = ()
    #: What stands behind the reason: taints, terms, domains with their counts, objects.
    details: tuple[str, ...] = ()
    #: Whether preemption could help at these nodes.
    is_preemptible: bool = False


class Budget(Value, frozen=True, kw_only=True):
    """A PodDisruptionBudget that covers victims or pods in the way."""

    name: str
    disruptions_allowed: int
    pods: tuple[str, ...]


class Preemption(Value, frozen=True, kw_only=True):
    """What preemption comes to."""

    #: kube-scheduler's words, or a sentence of our own where it says nothing.
    verdict: str
    nominated_node: str = ""
    victims: tuple[str, ...] = ()
    budgets: tuple[Budget, ...] = ()


class Group(Value, frozen=True, kw_only=True):
    """The pod's group in this attempt."""

    name: str
    kind: str
    #: Members that exist, that the group needs, and that have a node.
    have: int
    need: int
    placed: int
    #: Members that this attempt could place.
    fitting: int = 0
    first_failing_member: str = ""
    domain: str = ""
    #: Nodes that have no place for one more member, because they are full.
    saturated_nodes: int = 0
    #: Nodes that no member may use, whatever is free.
    excluded_nodes: int = 0
    message: str = ""


class Change(Value, frozen=True, kw_only=True):
    """One change of one object, for programs. ``verb``: patch (JSON patch), replace (delete and
    recreate), create or delete."""

    verb: Literal["patch", "replace", "create", "delete"]
    #: apiVersion and kind, as in "apps/v1 Deployment".
    kind: str
    name: str
    namespace: str = ""
    #: For patch: the operations of RFC 6902.
    patch: tuple[dict[str, Any], ...] = ()
    #: For replace and create: the manifest.
    content: dict[str, Any] | None = None


class Fix(Value, frozen=True, kw_only=True):
    """The smallest change of its kind with which the pod fits.

    The commands were tried in a model of the cluster, with its admission and controllers.
    """

    #: What changes: pod, object, workload or node.
    changes_what: Literal["pod", "object", "workload", "node"]
    #: One line per step. Several steps work only together.
    steps: tuple[str, ...]
    #: Where the pod would go.
    node: str
    changes: tuple[Change, ...]
    #: Commands for a shell, one line each. None: only a person or another tool can do it.
    commands: tuple[str, ...] = ()
    #: What the commands create, for a reader.
    manifest: str = ""
    #: The object whose pod template changes, as in "Deployment default/web"; "": none.
    target: str = ""
    #: The tool that writes the target again and again, as in "Helm release shop"; "": none.
    managed_by: str = ""
    #: Pods of the workload that wait, and how many of them get a node.
    waiting: int = 1
    helped: int = 1
    #: Whether not all of them were tried, so that more than ``helped`` may get a node.
    is_bounded: bool = False
    #: What the reader should know before the change.
    notes: tuple[str, ...] = ()

    @property
    def is_combined(self) -> bool:
        """Whether several steps work only together."""
        return len(self.steps) > 1


class NodeComparison(Value, frozen=True, kw_only=True):
    """One node as a place for a bound pod."""

    node: str
    #: None: the node is rejected.
    total: int | None = None
    #: Plugin → weighted score.
    scores: dict[str, int] = {}
    reason: str = ""


class Comparison(Value, frozen=True, kw_only=True):
    """A bound pod's node among all nodes, as if the pod were pending now."""

    node: str
    feasible: int
    #: Nodes with a higher total, and other nodes with the same total.
    better: int
    equal: int
    #: The pod's node first, then the best nodes.
    nodes: tuple[NodeComparison, ...]
    #: Why the pod would not get its node today; "": it would fit there.
    rejection: str = ""


class WorkloadPods(Value, frozen=True, kw_only=True, omit_defaults=False):
    """The workload that a question was about. The pod of the answer is one of its pods."""

    kind: str
    #: "namespace/name"
    name: str
    #: Pods that have not ended, and those of them that have a node.
    pods: int = 0
    placed: int = 0


class Explanation(Value, frozen=True, kw_only=True, omit_defaults=False):
    """Why a pod has a node or none, and what would give it one."""

    api_version: str = API_VERSION
    kind: str = KIND
    #: "namespace/name"; "": the workload has no pods.
    pod: str
    scheduler: str
    result: Result
    source: str = ""
    #: Of the folder of a run: its moment that the answer is about.
    moment: RunMoment | None = None
    node: str = ""
    #: kube-scheduler's sentence, computed now; "" if the pod has or gets a node.
    message: str = ""
    #: The sentence in the pod's status, where it differs.
    stored_message: str = ""
    #: None: the question named the pod.
    workload: WorkloadPods | None = None
    node_count: int = 0
    feasible_count: int = 0
    causes: tuple[Cause, ...] = ()
    preemption: Preemption | None = None
    group: Group | None = None
    fixes: tuple[Fix, ...] = ()
    #: How many changes were tried to find the fixes.
    trials: int = 0
    comparison: Comparison | None = None
    #: What the answer leaves out, and what the reader should know.
    remarks: tuple[str, ...] = ()


def explanation_schema() -> dict[str, Any]:
    """The schema of an explanation."""
    return schema_of(Explanation, KIND)


def schema_of(answer: type[Value], kind: str) -> dict[str, Any]:
    """The schema of an answer with a version (JSON Schema, draft 2020-12)."""
    (whole,), parts = msgspec.json.schema_components([answer], ref_template="#/$defs/{name}")
    root = parts[answer.__name__]
    root["properties"] |= {"apiVersion": {"const": API_VERSION}, "kind": {"const": kind}}
    schema = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": schema, "title": kind, **whole, "$defs": parts}
