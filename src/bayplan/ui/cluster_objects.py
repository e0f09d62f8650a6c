"""The objects of a cluster at one moment, as its page needs them.

Files pass through the API server in memory, as in every question about files. The objects of an API
server are used as they are, so the page answers from the same picture as `bayplan why`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import final

from bayplan.adapters.embedded.api_features import ApiFeatures
from bayplan.adapters.embedded.versioned_store import StoredObject
from bayplan.api.objects import POD, Pod
from bayplan.history.entries import ObjectChange
from bayplan.history.state_log import change_of
from bayplan.model.picture import ClusterPicture
from bayplan.model.reading import objects_of_workload
from bayplan.objects.keys import key_of
from bayplan.objects.workloads import pod_name
from bayplan.ports import EventType
from bayplan.sim.input.inputs import load_inputs, moved_back
from bayplan.sim.input.sources import InputSource
from bayplan.sim.input.workload import ExpansionMode, Workload, is_pending_pod


@final
@dataclass(frozen=True, slots=True)
class ClusterObjects:
    """What was read from a cluster."""

    picture: ClusterPicture
    #: Each object as it was created, and each change of it.
    changes: Sequence[ObjectChange]
    #: See `Timeline.created`.
    created: Mapping[str, str]


def objects_of_inputs(
    sources: Sequence[InputSource], name: str, features: ApiFeatures
) -> ClusterObjects:
    """The objects of files. Raises InputError."""
    workload, changes = load_inputs(sources, expansion=ExpansionMode.ONCE), list[ObjectChange]()

    def see(before: StoredObject | None, after: StoredObject | None) -> None:
        changes.append(change_of(before, after, 0.0))

    picture = objects_of_workload(workload, name, see, features=features)
    return ClusterObjects(picture, changes, dict(_creations(workload)))


def objects_of_picture(picture: ClusterPicture) -> ClusterObjects:
    """The objects that an API server has."""
    changes = [
        ObjectChange(at_seconds=0.0, type=EventType.ADDED, kind=key.kind, object=each)
        for key, each in picture.objects
    ]
    pods = (pod for pod in picture.of(POD) if isinstance(pod, Pod) and not pod.spec.node_name)
    created = {pod_name(pod): pod.metadata.creation_timestamp or "" for pod in pods}
    return ClusterObjects(picture, changes, created)


def _creations(workload: Workload) -> Iterator[tuple[str, str]]:
    """The creation time of each pod without a node that names one."""
    for content in workload.initial:
        if content.get("kind") == "Pod" and is_pending_pod(content):
            pod = moved_back(content, -workload.moved_back_seconds)
            stamp, key = pod["metadata"].get("creationTimestamp"), key_of(content)
            if isinstance(stamp, str):
                yield f"{key.namespace}/{key.name}", stamp
