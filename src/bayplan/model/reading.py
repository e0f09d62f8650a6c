"""Where the objects of a model come from: files (model/run_moments.py has the folder of a run).

The objects of files pass through the API server in memory, as in a simulation: with its checks and
defaults, the pods of controllers, and the claims that controllers make for pods.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace
from types import MappingProxyType
from typing import final

from bayplan.adapters.embedded.admission.plugin_set import PluginSet
from bayplan.adapters.embedded.api_errors import named
from bayplan.adapters.embedded.api_features import ApiFeatures
from bayplan.adapters.embedded.cluster import EmbeddedCluster
from bayplan.adapters.embedded.versioned_store import Observer
from bayplan.answers.amounts import counted, pod_count
from bayplan.api.objects import POD, ApiObject, Pod, decode, decoded_kinds
from bayplan.clock import ManualClock
from bayplan.model.picture import ClusterPicture, RefusedPod
from bayplan.objects.keys import ObjectKey, key_of, kind_of
from bayplan.objects.object_store import ObjectStore
from bayplan.objects.workloads import controller_reference
from bayplan.ports import ApiError
from bayplan.sim.input.inputs import load_inputs
from bayplan.sim.input.workload import (
    Content,
    ExpansionMode,
    Step,
    Verb,
    Workload,
    is_pending_pod,
    is_pod,
)
from bayplan.sim.loop import run, settled
from bayplan.sim.world.pending_deletions import PendingDeletions
from bayplan.sim.world.refused_needs import RefusedNeeds
from bayplan.sim.world.volume_controller import VolumeController


def objects_of_files(
    paths: Iterable[str],
    read_kinds: Collection[str] = (),
    admission: PluginSet | None = None,
    *,
    features: ApiFeatures,
) -> ClusterPicture:
    """The objects of files, folders and standard input ("-"); see `load_inputs`.

    Later steps of a scenario are left out. ``read_kinds``: kinds that plugins read. ``admission``:
    the admission plugins that run, whatever the scenarios say. ``features``: those of the API
    server and its controllers. Raises InputError.
    """
    listed = list(paths)
    workload = load_inputs(
        listed, read_kinds=read_kinds, expansion=ExpansionMode.ONCE, admission=admission
    )
    return objects_of_workload(workload, ", ".join(listed), features=features)


def objects_of_workload(
    workload: Workload,
    source: str,
    observer: Observer | None = None,
    *,
    features: ApiFeatures,
    charged_pods: Iterable[Pod] = (),
) -> ClusterPicture:
    """The objects at the beginning of a workload, as an API server has them.

    ``observer``: sees each object as it is created and changed, also pods that have ended.
    ``charged_pods``: pods that quotas count, although they are not part of the workload.
    ``features``: those of the API server and its controllers.
    """
    clock = ManualClock()
    cluster = EmbeddedCluster(
        clock,
        admission=workload.admission,
        charged_pods=charged_pods,
        features=features,
    )
    if observer is not None:
        cluster.observe(observer)
    return run(_created(workload, cluster, clock, source), clock)


async def _created(
    workload: Workload, cluster: EmbeddedCluster, clock: ManualClock, source: str
) -> ClusterPicture:
    problems = list[str]()
    refused, needs = RefusedObjects(), RefusedNeeds()

    def refuse(what: str, problem: ApiError) -> None:
        problems.append(f"{what}: {problem}")

    volumes, deletions = VolumeController(cluster, refuse), PendingDeletions(cluster)
    present = [*workload.initial]
    present += [step.content for step in workload.steps if _is_present(step)]
    later_count = len(workload.initial) + len(workload.steps) - len(present)
    for content in present:
        try:
            if missing := needs.of_controller(content) or needs.of_claims(content):
                raise missing
            cluster.create(content)
        except ApiError as problem:
            needs.add(content, problem)
            refused.add(content, problem)
        # Before, the pods that use a claim may not be there yet.
        if is_pending_pod(content):
            volumes.act()
    await settled()
    missing_count = workload.follower_count + refused.owned_count
    notes = [*workload.all_notes(-missing_count), *problems]
    notes += refused.notes()
    notes += deletions.notes()
    if later_count:
        steps = counted(later_count, "later step")
        notes.append(f"{steps} of the scenario {'is' if later_count == 1 else 'are'} left out")
    kinds = {kind_of(one) for one in present}
    return replace(
        picture_of(cluster, kinds | decoded_kinds(), source),
        epoch_seconds=clock.epoch_seconds(),
        moved_back_seconds=workload.moved_back_seconds,
        unknown_workloads=workload.unknown_workloads,
        left_out=workload.left_out,
        notes=tuple(notes),
        refused_pods=tuple(refused.pods),
        ended_pods=frozenset(workload.ended_pods),
        admission=workload.admission,
        reported=workload.reported,
    )


def picture_of(cluster: EmbeddedCluster, kinds: Iterable[str], source: str) -> ClusterPicture:
    """The objects of these kinds that a scheduler sees in an API server in memory."""
    objects, contents = ObjectStore[ApiObject](), dict[ObjectKey, Content | bytes]()
    for kind in sorted(kinds):
        for stored in cluster.objects(kind):
            if stored.is_visible:
                objects.put(stored.key, stored.object)
                contents[stored.key] = stored.content
    return ClusterPicture(objects, MappingProxyType(contents), source=source)


@final
class RefusedObjects:
    """Objects that the API server refuses: pods of one owner that are refused for one reason are
    one note."""

    def __init__(self) -> None:
        #: Owner and reason → the number of pods.
        self._counts: dict[tuple[str, str], int] = {}
        #: In the order of the refusals; each once.
        self._notes: dict[str, None] = {}
        self.pods: list[RefusedPod] = []

    @property
    def owned_count(self) -> int:
        """The number of pods that have an owner."""
        return sum(self._counts.values())

    def add(self, content: Content, problem: ApiError) -> None:
        owner, key = _owner(content), key_of(content)
        reason = str(problem).removeprefix(f"{named(key)} is ")
        if is_pod(content):
            self.pods.append(RefusedPod(_pod(content), reason))
        if owner is None:
            self._notes[f"create: {problem}"] = None
            return
        self._counts[owner, reason] = self._counts.get((owner, reason), 0) + 1

    def notes(self) -> list[str]:
        """The notes for the reader."""
        of_owners = [
            f"{pod_count(count)} of {owner} cannot be created: {reason}"
            for (owner, reason), count in self._counts.items()
        ]
        return [*self._notes, *of_owners]


def _pod(content: Content) -> Pod:
    meta = {**content["metadata"], "namespace": key_of(content).namespace}
    pod = decode(POD, {**content, "metadata": meta})
    assert isinstance(pod, Pod)
    return pod


def _owner(content: Content) -> str | None:
    """The controller of a pod, as "Deployment default/web"; None: there is none."""
    if not is_pod(content):
        return None
    owner = controller_reference(content)
    if owner is None:
        return None
    return f"{owner.get('kind')} {key_of(content).namespace}/{owner.get('name')}"


def _is_present(step: Step) -> bool:
    """Whether a step creates an object at the beginning."""
    return step.verb is Verb.CREATE and step.at_seconds <= 0
