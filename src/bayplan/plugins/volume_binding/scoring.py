"""How much of the storage that a node offers a pod's claims would use, as a score.

Of volumes that are there, asked for against their size; of volumes to be made, asked for against
the room there is; per storage class, and the mean over the classes. Upstream:
volumebinding/scorer.go, and Score of the plugin (gate StorageCapacityScoring).
"""

from collections.abc import Sequence

import numpy as np

from bayplan.framework.arithmetic import uniform
from bayplan.framework.utilization_shape import MAX_UTILIZATION
from bayplan.plugins.volume_binding.finding import NONE, Found
from bayplan.state.columns import Int64s, Mask, NodeScores


class _Classes:
    """Per storage class: what is asked for, what is offered, and where; [nodes] each."""

    def __init__(self, count: int) -> None:
        self._count = count
        self.requested: dict[str, Int64s] = {}
        self.offered: dict[str, Int64s] = {}
        self.where: dict[str, Mask] = {}

    def add(self, name: str, where: Mask, requested: int) -> Int64s:
        """Returns what is offered of the class, to be written to."""
        zeros = np.zeros(self._count, np.int64)
        self.requested[name] = self.requested.get(name, zeros) + requested * where
        self.where[name] = self.where.get(name, where) | where
        return self.offered.setdefault(name, zeros.copy())


def scores(found: Found, by_utilization: Sequence[int], count: int) -> NodeScores:
    """int64[nodes]: 0..100; nodes where nothing is known of any storage score 0."""
    classes = _Classes(count)
    has_static = np.zeros(count, np.bool_)
    for matched in found.matched:
        has_static |= matched.chosen != NONE
    _add_matched(classes, found)
    _add_provisioned(classes, found, ~has_static)
    if not any(where.any() for where in classes.where.values()):
        return uniform(0, count)
    line = np.array(by_utilization, np.int64)
    total, class_count = np.zeros(count, np.int64), np.zeros(count, np.int64)
    for name, where in classes.where.items():
        used = _utilization(classes.requested[name], classes.offered[name])
        total += np.where(where, line[used], 0)
        class_count += where
    # Go rounds half away from zero; none of these is negative.
    return np.floor(total / np.maximum(class_count, 1) + 0.5).astype(np.int64)


def _add_matched(classes: _Classes, found: Found) -> None:
    for matched in found.matched:
        if not matched.volumes:
            continue
        taken = matched.chosen != NONE
        sizes = np.array([volume.size_bytes for volume in matched.volumes], np.int64)
        # By the field, as upstream, which looks at the old annotation elsewhere.
        names = [volume.volume.spec.storage_class_name for volume in matched.volumes]
        for name in dict.fromkeys(names):
            of_class = np.array([each == name for each in names], np.bool_)
            where = taken & of_class[matched.chosen]
            offered = classes.add(name, where, matched.claim.size_bytes)
            offered += np.where(where, sizes[matched.chosen], 0)


def _add_provisioned(classes: _Classes, found: Found, where_nothing_is_there: Mask) -> None:
    for provisioned in found.provisioned:
        known = provisioned.wanted & where_nothing_is_there & (provisioned.found != NONE)
        if not known.any():
            continue
        sizes = np.array([each.capacity_bytes for each in provisioned.capacities], np.int64)
        # Two volumes of one class are made in the same room: it is not offered twice.
        claim = provisioned.claim
        offered = classes.add(claim.class_name, known, claim.size_bytes)
        offered[known] = sizes[provisioned.found[known]]


def _utilization(requested: Int64s, offered: Int64s) -> Int64s:
    """int64[nodes]: 0..100; more than there is, and nothing at all, is full."""
    is_full = (offered == 0) | (requested > offered)
    share = requested * MAX_UTILIZATION // np.maximum(offered, 1)
    return np.where(is_full, MAX_UTILIZATION, share)
