"""The JSON answers of the page's server, as types. `GET api/schema.json` has their schema.

Lists come in pages of at most `PAGE_MAX` entries. No answer has the whole cluster except that of
the heat map, which has one number per node. Amounts are cpu in millicores and other resources in
whole units; times are seconds of the run.
"""

from typing import Generic, TypeVar

from bayplan.answers.document import Value
from bayplan.comparison.curves import ComparedCurve
from bayplan.history.timeline import Cause
from bayplan.journal import AttemptRecord

#: The most entries of one page of a list.
PAGE_MAX = 500
PAGE = 100


T = TypeVar("T")


class Computation(Value, Generic[T]):
    """An answer that is computed in the background, or a part of one. The page asks again while
    ``phase`` is computing."""

    #: The phase: computing, ready, failed.
    phase: str
    #: Why it failed.
    problem: str = ""
    value: T | None = None
    #: For an answer with a list: the length of the whole list, and the position of the first entry
    #: of this part.
    total: int = 0
    offset: int = 0


# ---- what is shown --------------------------------------------------------------------------


class Totals(Value):
    """Numbers of pods at the end of a run, from its summary."""

    nodes: int
    pods: int
    #: The pods on nodes: those that the run `scheduled`, and those that were already `running` on a
    #: node.
    placed: int
    scheduled: int
    unschedulable: int
    running: int
    #: "2 pods gone: 2 preempted (replaced)"; "": no pod is gone.
    gone: str


class Source(Value):
    """What the page shows, and whether it is ready."""

    name: str
    #: The kind: run, cluster, live, comparison, work (a command that has not ended).
    kind: str
    #: The phase: loading, ready, failed.
    phase: str
    #: Why it failed.
    problem: str = ""
    #: What the reader should know: what is missing, and what was made up.
    notes: tuple[str, ...] = ()
    #: What the command does, as a sentence, and what is counted; "": the log is being read.
    doing: str = ""
    unit: str = "pod"
    #: While the log is being read: the number of pods that were created so far, and of all pods.
    done_count: int = 0
    total_count: int = 0
    #: The totals of the run's summary. They are there while the run is loading, too.
    totals: Totals | None = None
    last_change: int = 0
    #: The first moment of the page. A running scheduler forgets what happened before it.
    start_seconds: float = 0.0
    end_seconds: float = 0.0
    #: Resources of the nodes, in the order of the page.
    resources: tuple[str, ...] = ()
    #: Keys of node labels.
    labels: tuple[str, ...] = ()
    #: The suffix that the names of all nodes share; see `common_suffix`.
    node_suffix: str = ""
    has_decisions: bool = False
    has_groups: bool = False
    #: Whether the engine answers questions about the subject: what-if, fixes.
    has_model: bool = False

    #: For a running scheduler: the moment of 0 s, as a time stamp.
    started: str = ""
    #: For a running scheduler: starting, leading, standby, stopping.
    replica: str = ""
    #: For a running scheduler: the replica that leads; "": unknown.
    leader: str = ""


class Tick(Value):
    """A running scheduler at a moment: what `api/events` sends."""

    #: The start, as `Source` has it. Another start means another process.
    started: str
    #: The number of changes since the start.
    change: int
    seconds: float
    start_seconds: float
    replica: str
    leader: str
    #: Why the scheduler ends; "": it goes on.
    reason: str = ""


class Moment(Value):
    change: int
    seconds: float


# ---- overview -------------------------------------------------------------------------------


class Usage(Value):
    """One resource over all nodes."""

    resource: str
    used: int
    allocatable: int


class Change(Value):
    """One change: what happened, and to which pod or node."""

    change: int
    seconds: float
    #: See `timeline.ChangeKind`, in lower case.
    what: str
    pod: str = ""
    node: str = ""


class ChangeGroup(Value):
    """Changes of one kind that concern the pods of one workload, or nodes."""

    #: The newest of them, and how many pods or nodes they concern.
    change: Change
    count: int
    #: The workload, such as "Deployment default/web"; "": the changes concern nodes.
    workload: str


class Overview(Value):
    change: int
    seconds: float
    nodes: int
    #: The number of pods that have not ended and are on existing nodes.
    placed: int
    waiting: int
    #: The numbers of waiting pods by the kind of their cause.
    waiting_kinds: dict[str, int]
    attempts: int
    #: State of nodes → the number of nodes that have it; see `tables.NODE_STATES`.
    node_states: dict[str, int]
    queues: dict[str, int]
    usage: tuple[Usage, ...]
    #: What changed last, the newest first.
    recent: tuple[ChangeGroup, ...]


class SeriesAnswer(Value):
    """Columns for charts: each has one number per point."""

    changes: list[int]
    seconds: list[float]
    placed: list[float]
    waiting: list[float]
    unschedulable: list[float]
    #: The number of attempts so far.
    attempts: list[float]
    queues: dict[str, list[float]]
    #: The share of the allocatable amount that is requested, 0 to 1.
    usage: dict[str, list[float]]


# ---- nodes ----------------------------------------------------------------------------------


class HeatGroup(Value):
    name: str
    count: int


class Heat(Value):
    """The heat map: one number per node, group by group."""

    change: int
    seconds: float
    #: Node numbers, as base64 of little-endian int32, in the order of the cells.
    nodes: str
    #: The values, as base64 of little-endian float32; NaN: the node has no value.
    values: str
    groups: tuple[HeatGroup, ...]
    #: The value of the last color: 1 for shares, the largest value for counts.
    high: float
    #: What each node offers of the resource that sizes the cells, packed like the values; "": all
    #: cells are equal.
    sizes: str = ""


class NodeRow(Value):
    number: int
    name: str
    pods: int
    usage: tuple[Usage, ...]
    #: The pool that a label names; "": none.
    pool: str = ""
    is_ready: bool = True
    is_unschedulable: bool = False
    #: The number of its taints.
    taints: int = 0


class NodePage(Value):
    total: int
    offset: int
    rows: tuple[NodeRow, ...]
    #: The values that the filters offer: the pools, and the keys of taints.
    pools: tuple[str, ...] = ()
    taints: tuple[str, ...] = ()


class NodeKind(Value):
    """Nodes of one kind. A question may add a node like them."""

    #: The name of the first node.
    template: str
    #: The kind in words, such as "node pool gpu, g5.12xlarge"; "": no label names it.
    text: str
    nodes: int
    #: What each of the nodes offers.
    usage: tuple[Usage, ...]


class NodeKinds(Value):
    #: The kind with the most nodes first; at most `PAGE_MAX`.
    kinds: tuple[NodeKind, ...]


class NodeAnswer(Value):
    number: int
    name: str
    #: Whether it exists at this change.
    is_there: bool
    pods: int = 0
    usage: tuple[Usage, ...] = ()
    labels: dict[str, str] = {}
    #: As kubectl prints them: key=value:effect.
    taints: tuple[str, ...] = ()
    pool: str = ""
    is_ready: bool = True
    is_unschedulable: bool = False


# ---- pods -----------------------------------------------------------------------------------


class PodEntry(Value):
    name: str
    #: The workload, such as "Deployment default/web"; without a controller, the pod.
    workload: str
    #: The state: placed, missing node (the node does not exist), waiting, ended, gone, absent.
    state: str
    node: str = ""
    #: The time since which the pod is in this state.
    since_seconds: float = 0.0
    attempts: int = 0
    #: The number of the cause, if the pod waits.
    cause: int = 0
    requests: dict[str, int] = {}


class PodPage(Value):
    total: int
    offset: int
    rows: tuple[PodEntry, ...]
    #: The values that the filters offer.
    namespaces: tuple[str, ...] = ()
    pools: tuple[str, ...] = ()


class WaitingGroup(Value):
    """Pods that wait for one cause."""

    number: int
    cause: Cause
    #: The reasons in short words; "": there are none.
    words: str
    pods: int
    #: The pod that has waited longest, and the time since which it waits.
    example: str
    since_seconds: float
    #: The time since which at least one pod waits for the cause at each moment.
    cause_since_seconds: float
    #: The creation of the oldest of the pods, as a time stamp; "": unknown.
    created: str
    #: The events after which the pods are tried again, by plugin.
    events: dict[str, tuple[str, ...]]


class WaitingPage(Value):
    change: int
    seconds: float
    #: The number of pods that wait.
    total: int
    #: The largest group first; equal ones in the order in which the causes first occurred.
    groups: tuple[WaitingGroup, ...]
    #: All causes, and the position of the first of `groups` among them.
    cause_count: int = 0
    offset: int = 0


class AttemptEntry(Value):
    """One attempt at a pod."""

    attempt: int
    change: int
    seconds: float
    result: str
    node: str = ""


class PodAnswer(Value):
    pod: PodEntry
    priority: int
    profile: str
    #: "" or "namespace/name".
    group: str
    #: For files without a run: the creation of the waiting pod, as a time stamp; "": unknown.
    created: str
    cause: Cause | None
    events: dict[str, tuple[str, ...]]
    #: The newest `PAGE_MAX` events in the life of the pod, the oldest first.
    changes: tuple[Change, ...]
    attempts: tuple[AttemptEntry, ...]


class Decision(Value):
    """One attempt, as the journal has it, and what it evicted."""

    record: AttemptRecord
    change: int
    victims: tuple[str, ...] = ()


# ---- groups ---------------------------------------------------------------------------------


class GroupEntry(Value):
    name: str
    #: 0: the group has no object that says how many members it needs.
    minimum: int
    members: int
    placed: int
    waiting: int
    #: The number of members that exist and have ended.
    ended: int = 0
    #: The result and message of its last attempt.
    result: str = ""
    message: str = ""


class GroupPage(Value):
    total: int
    offset: int
    rows: tuple[GroupEntry, ...]


class GroupAttempt(Value):
    change: int
    seconds: float
    attempt: int
    result: str
    assigned: int
    fitting: int
    domain: str
    message: str


class GroupReservation(Value):
    """Nodes that are reserved for a group."""

    nodes: int
    since_seconds: float
    #: The expected start of the group; None: it starts when room is free.
    start_seconds: float | None


class GroupDomain(Value):
    """One value of a topology label."""

    key: str
    name: str
    #: The number of nodes with this value, and of members on them.
    nodes: int
    members: int
    #: Whether the last attempt that named a domain chose this one.
    is_chosen: bool


class GroupAnswer(Value):
    group: GroupEntry
    attempts: tuple[GroupAttempt, ...]
    #: Node → the number of members on it.
    nodes: dict[str, int]
    #: The reservation of the group; None: it has none.
    reservation: GroupReservation | None
    #: The domains of each topology key, those with the most members first; at most 100.
    domains: tuple[GroupDomain, ...]
    #: Why the members wait: the number of a cause → the number of members.
    waiting_causes: dict[int, int]
    #: The causes that `waitingCauses` names by number.
    causes: dict[int, Cause]
    #: A member that waits; "": no member waits.
    waiting_member: str


# ---- two runs -------------------------------------------------------------------------------


class ComparisonRow(Value):
    """One number of both runs."""

    name: str
    #: The unit: pods, seconds, share, or "" for a plain number.
    unit: str
    one: float
    other: float


class Step(Value):
    """One decision: the outcome of an attempt."""

    pod: str
    attempt: int
    seconds: float
    change: int
    result: str
    node: str


class FirstDifference(Value):
    #: The decision's place in both runs, from 1.
    number: int
    one: Step
    other: Step


class Comparison(Value):
    """What differs between two runs."""

    one: str
    other: str
    #: The numbers that differ, and the count of equal ones.
    rows: tuple[ComparisonRow, ...]
    equal_count: int
    #: The number of pods that went elsewhere, and of all pods of both runs.
    moved_count: int
    pods: int
    first: FirstDifference | None
    attempts: tuple[int, int]


class ScoreDifference(Value):
    """The weighted score of the chosen node less that of the other node."""

    plugin: str
    difference: int


class Preference(Value):
    """Why a run preferred its node to the node of the other run."""

    #: The difference of the totals.
    difference: int = 0
    #: The plugins that differ, the largest differences first.
    plugins: tuple[ScoreDifference, ...] = ()
    note: str = ""
    #: The attempt that is to be repeated to score the other node, because its record does not have
    #: that node; 0: none.
    computed_attempt: int = 0


class MovedPod(Value):
    """A pod that went elsewhere. A node "" means that the run did not place the pod."""

    pod: str
    one: str
    other: str
    in_one: Preference
    in_other: Preference


class MovedPage(Value):
    total: int
    offset: int
    rows: tuple[MovedPod, ...]


class Curves(Value):
    """The curves of one input of a comparison."""

    rows: tuple[ComparedCurve, ...]


class Problem(Value):
    """The body of an answer with an HTTP status of 400 or more."""

    error: str
