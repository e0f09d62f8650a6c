"""How many more pods of some shapes fit into a cluster today.

A shape is a pod, a controller's template or a pod group. Each is counted alone, in a trial of its
own: the shapes do not compete with one another.
"""

from collections import Counter
from collections.abc import Sequence
from typing import final

from msgspec import Struct, field

from bayplan.api.pod_groups import PodGroupKinds
from bayplan.model.cluster_model import ClusterModel
from bayplan.whatif.additions import Additions
from bayplan.whatif.copies import Unit, units_of
from bayplan.whatif.fit import API_VERSION, LIMIT, MaxFit, check_schedulers, max_fit


@final
class ShapeHeadroom(Struct, frozen=True, kw_only=True, rename="camel"):
    """One shape."""

    #: A short name: that of the workload, with its namespace if the name alone is not unique.
    shape: str
    #: The workload, as in "Deployment default/web".
    workload: str
    #: What one pod, or all members of a group together, request.
    requests: dict[str, int]
    max: MaxFit


@final
class Headroom(Struct, frozen=True, kw_only=True, rename="camel"):
    """The answer of `bayplan headroom`."""

    api_version: str = API_VERSION
    kind: str = "Headroom"
    #: The name of the cluster, for messages.
    cluster: str
    shapes: tuple[ShapeHeadroom, ...]
    #: Pods that wait in the cluster already, and were not tried.
    pending_count: int = field(default=0, name="pendingPods")
    notes: tuple[str, ...] = ()


def headroom(
    model: ClusterModel, additions: Additions, kinds: PodGroupKinds, limit: int = LIMIT
) -> Headroom:
    """How many more pods of each shape fit. The model stays as it is.

    ``kinds``: the kinds of pod groups. Raises BadInputError for a pod of a scheduler that the
    configuration does not have.
    """
    check_schedulers(model, additions.pods)
    units = units_of(additions, kinds)
    names = shape_names(units)
    return Headroom(
        cluster=model.source.source,
        shapes=tuple(
            _shape(model, unit, name, limit) for unit, name in zip(units, names, strict=True)
        ),
        pending_count=len(model.pending()),
        notes=(*model.source.notes, *additions.notes),
    )


def _shape(model: ClusterModel, unit: Unit, name: str, limit: int) -> ShapeHeadroom:
    with model.trial():
        count = max_fit(model, unit, limit)
    return ShapeHeadroom(shape=name, workload=unit.name, requests=unit.requests(), max=count)


def shape_names(units: Sequence[Unit]) -> list[str]:
    """A short name for each: of the workload, or, where two have the same, the long one."""
    short = [unit.name.rpartition("/")[2] for unit in units]
    counts = Counter(short)
    pairs = zip(units, short, strict=True)
    return [name if counts[name] == 1 else unit.name for unit, name in pairs]
