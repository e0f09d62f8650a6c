"""Code: the outcome of a call of a plugin. Rejection: nodes of a view that do not fit a pod, and
why.

Upstream: framework.Code (k8s.io/kube-scheduler/framework, v1.37).
"""

import warnings
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, cast, final

import numpy as np
import numpy.typing as npt

from bayplan.state.columns import Mask, Rows

Codes = npt.NDArray[np.uint8]


class Code(IntEnum):
    """The outcome of one call of a plugin; upstream: framework.Code."""

    SUCCESS = 0
    #: Something unexpected: the attempt is retried after backoff, no plugin is to blame.
    ERROR = 1
    #: Cannot be scheduled now; waits for an event of the rejecting plugin, then pays backoff.
    UNSCHEDULABLE = 2
    #: The same, and evicting pods does not help: preemption skips such nodes.
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3
    #: Permit only: hold the pod until allowed, rejected or timed out.
    WAIT = 4
    #: PreFilter, PreScore: leave the coupled plugin out. Bind: use the next binder.
    SKIP = 5
    #: Waits for an event of the plugin and then pays no backoff.
    PENDING = 6

    def __str__(self) -> str:
        return _SPELLINGS[self]


_SPELLINGS: Final = (
    "Success",
    "Error",
    "Unschedulable",
    "UnschedulableAndUnresolvable",
    "Wait",
    "Skip",
    "Pending",
)


def check_reasons(owner: str, reasons: Any) -> None:
    """Raises TypeError unless ``reasons`` is a tuple of strings. ``owner``: whose reasons."""
    # Not `cast`, which is a call for each status.
    texts: tuple[Any, ...] = reasons
    if isinstance(reasons, tuple):
        for reason in texts:
            if not isinstance(reason, str):
                break
        else:
            return
    raise TypeError(f'{owner}: reasons {reasons!r}; wanted a tuple of strings, as ("no room",)')


@final
@dataclass(frozen=True, slots=True, init=False, eq=False)
class Rejection:
    """Some nodes of a view, rejected for ``reasons``; `NodeView.reject` makes one.

    ``positions``: bool[nodes of the view], or intp[rejected nodes]: positions in the view. They are
    not rows of the table (`NodeView.rows`). ``codes``: one Code per node of the view
    (uint8[nodes]) in place of ``code``, or None. Several rejections by one plugin may contain the
    same node: its reasons add up, and its strongest code wins.
    """

    positions: Mask | Rows
    code: Code
    reasons: tuple[str, ...]
    codes: Codes | None

    def __init__(
        self,
        positions: Mask | Rows | None = None,
        code: Code = Code.UNSCHEDULABLE,
        reasons: tuple[str, ...] = (),
        codes: Codes | None = None,
        *,
        rows: Mask | Rows | None = None,
    ) -> None:
        """``rows``: the old name of ``positions``; accepted for one release.

        Raises TypeError without positions, and for a code or reasons of a wrong form.
        """
        if rows is not None:
            _warn("Rejection(rows=…) will not be accepted", "Rejection(positions=…)")
            positions = rows
        if positions is None:
            raise TypeError("Rejection() misses its positions in the view")
        if type(code) is not Code:
            raise TypeError(f"Rejection: code {code!r}; wanted a Code, as Code.UNSCHEDULABLE")
        if codes is not None and not isinstance(cast("Any", codes), np.ndarray):
            raise TypeError(f"Rejection: codes {codes!r}; wanted uint8[nodes], one Code per node")
        check_reasons("Rejection", reasons)
        assign = object.__setattr__
        assign(self, "positions", positions)
        assign(self, "code", code)
        assign(self, "reasons", reasons)
        assign(self, "codes", codes)

    @property
    def rows(self) -> Mask | Rows:
        """The old name of ``positions``; accepted for one release."""
        _warn("Rejection.rows will not be there", "Rejection.positions")
        return self.positions


def _warn(problem: str, replacement: str) -> None:
    message = f"{problem} in the next release; write {replacement}"
    warnings.warn(message, DeprecationWarning, stacklevel=3)
