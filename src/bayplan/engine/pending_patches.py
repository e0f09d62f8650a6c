"""What we wrote into pods' statuses and the API has not told back yet.

An update that is but the echo of our own patch is no news: taken for some, it would have a refused
pod tried again as fast as the API answers. An echo is known by its content, not by its time: a
change of somebody else's that arrives in between is news.
"""

from typing import final

from msgspec.structs import replace

from bayplan.api.objects import PodCondition, PodStatus
from bayplan.ports import PatchPodStatus
from bayplan.state.pods import PodInfo

POD_SCHEDULED = "PodScheduled"


@final
class PendingPatches:
    """Patches on their way, by the pod's uid, oldest first."""

    def __init__(self) -> None:
        self._patches: dict[str, list[PatchPodStatus]] = {}

    def note(self, patch: PatchPodStatus) -> None:
        """It is being written."""
        self._patches.setdefault(patch.uid, []).append(patch)

    def forget(self, uid: str) -> None:
        """The pod is gone, or on a node: what was written of it does not matter any more."""
        self._patches.pop(uid, None)

    def nominated_node(self, pod: PodInfo) -> str:
        """Where the pod's status says it is nominated, or will say."""
        for patch in reversed(self._patches.get(pod.uid, ())):
            if patch.nominated_node_name is not None:
                return patch.nominated_node_name
        return pod.nominated_node_name

    def is_echo(self, old: PodInfo, new: PodInfo) -> bool:
        """Whether an update brings what we wrote, and nothing else. It is told back then.

        Patches may have been merged on their way: one update can bring several.
        """
        patches = self._patches.get(new.uid)
        if not patches or not _differ_in_status_only(old, new):
            return False
        so_far = patches[0]
        for count, patch in enumerate(patches, 1):
            so_far = patch if count == 1 else so_far.merged_with(patch)
            if _applied(so_far, old.status) == _essence(new.status):
                del patches[:count]
                return True
        return False


#: What of a status a scheduler may write: (nomination, condition PodScheduled); and all the rest.
_Essence = tuple[str, PodCondition | None, PodStatus]


def _applied(patch: PatchPodStatus, status: PodStatus) -> _Essence:
    """What a status is after a patch."""
    nominated, condition, rest = _essence(status)
    if patch.nominated_node_name is not None:
        nominated = patch.nominated_node_name
    if patch.condition is not None:
        condition = _untimed(patch.condition)
    return nominated, condition, rest


def _essence(status: PodStatus) -> _Essence:
    conditions = status.conditions or ()
    own = next((_untimed(c) for c in conditions if c.type == POD_SCHEDULED), None)
    others = tuple(c for c in conditions if c.type != POD_SCHEDULED)
    rest = replace(status, conditions=others, nominated_node_name=None)
    return status.nominated_node_name or "", own, rest


def _untimed(condition: PodCondition) -> PodCondition:
    """When a condition began is for the API server to say."""
    return replace(condition, last_transition_time=None, observed_generation=None)


def _differ_in_status_only(old: PodInfo, new: PodInfo) -> bool:
    before, after = old.metadata, new.metadata
    return (
        old.shape is new.shape
        and old.declared == new.declared
        and replace(before, resource_version=None) == replace(after, resource_version=None)
    )
