"""Results as values: Code, Status, Rejection, Diagnosis, FitError.

Expected outcomes are never exceptions. `None` means success wherever a Status is accepted. A
vectorized Filter returns `Rejection`s: some nodes, one code, some reasons. The runtime stores them
as `NodeToStatus` and writes the message that kube-scheduler would write.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Final

import numpy as np

from bayplan.state.nodes import NodeView
from bayplan.state.rejections import Code as Code
from bayplan.state.rejections import Codes as Codes
from bayplan.state.rejections import Rejection as Rejection
from bayplan.state.rejections import check_reasons

#: Stands for a plugin where an extender removed nodes.
EXTENDER_NAME: Final = "Extender"
NO_NODES_AVAILABLE: Final = "no nodes available to schedule pods"


_REJECTED: Final = frozenset(
    (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING)
)


@dataclass(frozen=True, slots=True)
class Status:
    """The outcome of one call. The framework fills in ``plugin``; a plugin leaves it empty."""

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""
    error: BaseException | None = None

    def __post_init__(self) -> None:
        if type(self.code) is not Code:
            raise TypeError(f"Status: code {self.code!r}; wanted a Code, as Code.UNSCHEDULABLE")
        check_reasons("Status", self.reasons)
        if self.error is not None and (not self.reasons or self.reasons[0] != str(self.error)):
            object.__setattr__(self, "reasons", (str(self.error), *self.reasons))

    @staticmethod
    def from_error(error: BaseException | None) -> "Status | None":
        return None if error is None else Status(Code.ERROR, error=error)

    @property
    def message(self) -> str:
        return ", ".join(self.reasons)

    def __str__(self) -> str:
        return self.message

    def with_reason(self, reason: str) -> "Status":
        return replace(self, reasons=(*self.reasons, reason))

    def with_plugin(self, plugin: str) -> "Status":
        # `replace` takes four times as long.
        return Status(self.code, self.reasons, plugin, self.error)

    def with_error(self, error: BaseException) -> "Status":
        """The same status with another error, whose text replaces the message."""
        reasons = self.reasons if self.error is None else self.reasons[1:]
        return replace(self, reasons=reasons, error=error)


def shared_names(names: Iterable[str] | None = ()) -> frozenset[str]:
    """Names of plugins as one shared set for all pods that these plugins reject. A set for each of
    100,000 waiting pods would take 40 MB."""
    return _shared(frozenset(names)) if names else _NO_NAMES


_NO_NAMES: Final = frozenset[str]()


@lru_cache(maxsize=4096)
def _shared(names: frozenset[str]) -> frozenset[str]:
    return names


def unschedulable(*reasons: str) -> Status:
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)


SKIP: Final = Status(Code.SKIP)


def code_of(status: Status | None) -> Code:
    return Code.SUCCESS if status is None else status.code


def is_success(status: Status | None) -> bool:
    return status is None or status.code is Code.SUCCESS


def is_wait(status: Status | None) -> bool:
    return status is not None and status.code is Code.WAIT


def is_skip(status: Status | None) -> bool:
    return status is not None and status.code is Code.SKIP


def is_rejected(status: Status | None) -> bool:
    return status is not None and status.code in _REJECTED


def as_error(status: Status | None) -> BaseException | None:
    """None for success, wait and skip; otherwise the wrapped error, or an error made of the
    message."""
    if status is None or status.code in (Code.SUCCESS, Code.WAIT, Code.SKIP):
        return None
    return status.error if status.error is not None else RuntimeError(status.message)


def same(one: Status | None, other: Status | None) -> bool:
    """Equality in which None and a bare SUCCESS are the same."""
    return (one or _SUCCESS) == (other or _SUCCESS)


_SUCCESS: Final = Status(Code.SUCCESS)
_ABSENT: Final = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE)


class NodeToStatus:
    """Statuses of nodes by name, with one status for all that are absent.

    Upstream: framework.NodeToStatus.
    """

    def __init__(
        self,
        explicit: Mapping[str, Status] | Callable[[], dict[str, Status]] | None = None,
        absent: Status | None = None,
        codes: Callable[[NodeView], Codes] | None = None,
        explicit_codes: Callable[[], frozenset[Code]] | None = None,
    ) -> None:
        """``explicit``: a function is called at the first read, because most callers read no
        status.

        It may read the cluster's loan, so the first read must fall within the cycle. ``codes``:
        finds the codes of all nodes of a view without a status of each; ``explicit_codes``: the
        codes that the explicit statuses may have.
        """
        self._codes = codes
        self._explicit_codes = explicit_codes
        if callable(explicit):
            self._find = explicit
        else:
            self._explicit = dict(explicit or {})
        self._absent = absent or _ABSENT

    @cached_property
    def _explicit(self) -> dict[str, Status]:
        return self._find()

    def get(self, node: str) -> Status:
        return self._explicit.get(node, self._absent)

    def set(self, node: str, status: Status) -> None:
        self._codes = self._explicit_codes = None
        self._explicit[node] = status

    def codes(self, nodes: NodeView) -> Codes:
        """uint8[nodes]: the code of each."""
        if self._codes is not None:
            return self._codes(nodes)
        return np.fromiter((self.get(name).code for name in nodes.names()), np.uint8, len(nodes))

    def may_have(self, code: Code) -> bool:
        """Whether some node may have a status with this code. If ``explicit_codes`` is set, no
        status is read."""
        if self._absent.code is code:
            return True
        if self._explicit_codes is not None:
            return code in self._explicit_codes()
        return any(status.code is code for status in self._explicit.values())

    def __len__(self) -> int:
        return len(self._explicit)

    @property
    def absent_nodes_status(self) -> Status:
        return self._absent

    def set_absent_nodes_status(self, status: Status) -> None:
        self._codes = None
        self._absent = status

    def for_each_explicit_node(self) -> Iterator[tuple[str, Status]]:
        yield from self._explicit.items()

    def nodes_for_status_code(self, nodes: Iterable[str], code: Code) -> list[str]:
        """The names in ``nodes`` (all nodes of the cluster) whose status has this code, sorted."""
        if self._absent.code is code:
            return sorted(n for n in nodes if self.get(n).code is code)
        existing = set(nodes)
        return sorted(
            n for n, status in self._explicit.items() if status.code is code and n in existing
        )

    def reason_counts(self, node_count: int) -> Counter[str]:
        """Reason → number of nodes. Absent nodes count for the reasons of the absent status."""
        counts: Counter[str] = Counter()
        for status in self._explicit.values():
            counts.update(status.reasons)
        absent_count = node_count - len(self._explicit)
        if absent_count > 0:
            for reason in self._absent.reasons:
                counts[reason] += absent_count
        return counts


def listed_reasons(counts: Mapping[str, int]) -> str:
    """Each reason with its number of nodes, as a message lists them: sorted as plain strings, so
    "10 x" comes before "2 y"."""
    return ", ".join(sorted([f"{count} {reason}" for reason, count in counts.items()]))


@dataclass(slots=True)
class Diagnosis:
    """Why no node fits: the message of PreFilter, or the status of each node."""

    node_to_status: NodeToStatus = field(default_factory=NodeToStatus)
    unschedulable_plugins: set[str] = field(default_factory=set[str])
    pending_plugins: set[str] = field(default_factory=set[str])
    pre_filter_msg: str = ""
    post_filter_msg: str = ""
    #: The code of the answer with this message.
    post_filter_code: "Code | None" = None
    #: `listed_reasons` of all nodes, if the reasons were counted without a status per node.
    listed_reasons: str | None = None

    def add_plugin_status(self, status: Status) -> None:
        """Record the plugin of a status as unschedulable; for PENDING also as pending. A status
        without a plugin is ignored."""
        if not status.plugin:
            return
        if status.code is Code.PENDING:
            self.pending_plugins.add(status.plugin)
        if is_rejected(status):
            self.unschedulable_plugins.add(status.plugin)


class FitError(Exception):
    """No node fits. A value that travels inside a Status, never raised by the core."""

    def __init__(self, pod_name: str, node_count: int, diagnosis: Diagnosis) -> None:
        super().__init__()
        self.pod_name = pod_name
        self.node_count = node_count
        self.diagnosis = diagnosis

    @property
    def message(self) -> str:
        """The sentence kube-scheduler prints; upstream: FitError.Error."""
        diagnosis = self.diagnosis
        parts = [f"0/{self.node_count} nodes are available:"]
        if diagnosis.pre_filter_msg:
            parts.append(f"{diagnosis.pre_filter_msg}.")
        else:
            reasons = diagnosis.listed_reasons
            if reasons is None:
                reasons = listed_reasons(diagnosis.node_to_status.reason_counts(self.node_count))
            if reasons:
                parts.append(f"{reasons}.")
        if diagnosis.post_filter_msg:
            parts.append(diagnosis.post_filter_msg)
        return " ".join(parts)

    def __str__(self) -> str:
        return self.message
