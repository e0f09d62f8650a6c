"""A group in the queue: one entry for all members that wait together."""

from dataclasses import dataclass, field
from typing import NamedTuple, final

from bayplan.api.pod_groups import GroupKey
from bayplan.framework.types import QueuedPodInfo

_NO_GROUP = GroupKey("", "", "")


class QueueGroup(NamedTuple):
    """A group whose members wait together, as the queue needs it."""

    key: GroupKey
    #: When the group's object was created: its place among entries of one priority.
    created_seconds: float
    #: Whether enough members exist for an attempt.
    is_complete: bool


@final
@dataclass(slots=True)
class QueuedPodGroupInfo(QueuedPodInfo):
    """Members of one group, tried in one pass. ``pod`` is the first of them.

    ``timestamp_seconds`` is when the group was created, and stays that; the counts are of the
    attempts at the group. Upstream: QueuedPodGroupInfo.
    """

    key: GroupKey = _NO_GROUP
    #: By uid, in the order in which they came.
    members: dict[str, QueuedPodInfo] = field(default_factory=dict[str, QueuedPodInfo])
    #: Whether enough members exist for an attempt.
    is_complete: bool = False
