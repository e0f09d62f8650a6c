"""Volumes that nobody has, by class, the one to take first in front.

Of those that fit, the volume controller takes one with the fewest access modes, and of these the
smallest. Upstream: volume/persistentvolume/index.go (allPossibleMatchingAccessModes).
"""

from bisect import bisect_left, insort
from collections import defaultdict
from typing import final

from bayplan.adapters.object_names import ObjectKey
from bayplan.adapters.object_store import Stored
from bayplan.api.objects import PersistentVolume
from bayplan.api.storage_objects import AVAILABLE
from bayplan.plugins.volume_binding.finding import fitting_volumes, may_hold
from bayplan.state.storage_infos import ClaimInfo, VolumeInfo

#: Number of access modes, size, name.
_Place = tuple[int, int, str]


@final
class FreeVolumes:
    """Kept current by whoever sees every change of a volume."""

    def __init__(self) -> None:
        self._infos: dict[ObjectKey, VolumeInfo] = {}
        self._by_class: dict[str, list[tuple[_Place, ObjectKey]]] = defaultdict(list)

    def see(self, key: ObjectKey, after: Stored | None) -> bool:
        """A volume has changed. Whether it is free now."""
        old = self._infos.pop(key, None)
        if old is not None:
            row = self._by_class[old.class_name]
            del row[bisect_left(row, (_place(old), key))]
        if after is None or not is_free(after):
            return False
        info = volume_info(after)
        self._infos[key] = info
        insort(self._by_class[info.class_name], (_place(info), key))
        return True

    def best_for(self, claim: ClaimInfo) -> ObjectKey | None:
        """Raises SelectorError."""
        for _, key in self._by_class.get(claim.class_name, ()):
            info = self._infos[key]
            if may_hold(info, claim) and fitting_volumes(claim, [info]):
                return key
        return None


def volume_info(stored: Stored) -> VolumeInfo:
    assert isinstance(stored.object, PersistentVolume)
    return VolumeInfo(stored.object)


def is_free(stored: Stored) -> bool:
    volume = stored.object
    assert isinstance(volume, PersistentVolume)
    return volume.spec.claim_ref is None and volume.status.phase == AVAILABLE


def _place(info: VolumeInfo) -> _Place:
    return len(info.volume.spec.access_modes or ()), info.size_nanos, info.name
