"""A workload that is to be added to a cluster: read, checked and expanded as in a simulation.

The workload's objects pass through the API server in memory together with those objects of the
cluster that admission and controllers read: classes, namespaces, limit ranges, quotas with the
objects that they count, the controllers that the workload replaces with the pods that they have,
and, for DaemonSets, nodes. So a Deployment that is in the
cluster already gets only the pods that it still lacks.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, cast, final

from msgspec import structs

from bayplan.adapters.embedded.admission.plugin import is_admitted
from bayplan.adapters.embedded.admission.plugin_set import PluginSet
from bayplan.adapters.embedded.admission.resource_quota import may_count
from bayplan.adapters.embedded.api_features import ApiFeatures, api_features
from bayplan.api.admission_objects import ADMISSION_KINDS, RESOURCE_QUOTA, ResourceQuota
from bayplan.api.device_objects import DEVICE_CLASS, RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE
from bayplan.api.objects import (
    DAEMON_SET,
    DEFAULT_SCHEDULER,
    NAMESPACE,
    NODE,
    POD,
    PRIORITY_CLASS,
    REPLICA_SET,
    STATEFUL_SET,
    STORAGE_CLASS,
    ApiObject,
    Pod,
)
from bayplan.api.pod_groups import UPSTREAM_KINDS
from bayplan.model.cluster_model import ClusterModel
from bayplan.model.picture import ClusterPicture, RefusedPod, plain, with_kind
from bayplan.model.reading import objects_of_workload
from bayplan.model.unjudged import NO_FURTHER_PODS, UnjudgedWorkload, unjudged
from bayplan.objects.keys import DEFAULT_NAMESPACE, ObjectKey, in_namespace, key_of
from bayplan.objects.object_store import ObjectStore
from bayplan.objects.workloads import pod_name
from bayplan.problems import BadInputError
from bayplan.sim.input.controller_kinds import CONTROLLERS
from bayplan.sim.input.controller_validation import needed_fields
from bayplan.sim.input.errors import InputErrors
from bayplan.sim.input.idle_controllers import REPLICATED
from bayplan.sim.input.inputs import load_inputs
from bayplan.sim.input.sources import InputSource, Part, own_kind, read_sources
from bayplan.sim.input.workload import Content, CreatedPods, ExpansionMode

#: The kinds of the cluster that admission reads.
_READ_BY_ADMISSION = (PRIORITY_CLASS, STORAGE_CLASS, NAMESPACE, DEVICE_CLASS, *ADMISSION_KINDS)
_PRESENT_POD = (
    "is in the cluster already: `bayplan why` tells whether it fits, and a copy of it needs a name"
    " of its own"
)
_UNCHANGED_NOTE = "is in the cluster already, and stays as it is there"
_TAKEN_NOTE = "is in the cluster already: only the pods that it lacks are added"


@final
@dataclass(frozen=True, slots=True)
class Additions:
    """Objects to add to a cluster, in the order of their creation."""

    #: (kind, object): all that is not to be placed.
    objects: tuple[tuple[str, ApiObject], ...]
    #: Pods that are to be placed.
    pods: tuple[Pod, ...]
    #: What the reader should know.
    notes: tuple[str, ...] = ()
    #: Objects from which no pod came.
    unjudged: tuple[UnjudgedWorkload, ...] = ()
    #: The scheduler that gets all pods; None: the scheduler that each pod names.
    scheduler_name: str | None = None
    #: The pods that the API server refuses.
    refused_pods: tuple[RefusedPod, ...] = ()

    @property
    def names(self) -> list[str]:
        """ "namespace/name" of each pod."""
        return [pod_name(pod) for pod in self.pods]


def read_additions(
    sources: Iterable[InputSource],
    cluster: ClusterPicture,
    read_kinds: Collection[str] = (),
    scheduler_name: str | None = DEFAULT_SCHEDULER,
    *,
    are_shapes: bool = False,
    admission: PluginSet | None = None,
    declared: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
    namespace: str = DEFAULT_NAMESPACE,
    features: ApiFeatures,
) -> Additions:
    """The workload of files, folders, standard input ("-") and objects. Raises BadInputError.

    ``read_kinds``: kinds that plugins read. ``scheduler_name``: the scheduler that gets all pods;
    None: the scheduler that each pod names. ``are_shapes``: the number of pods does not matter, so
    that a controller without replicas, and a suspended Job, have one. ``admission``: the admission
    plugins that run; None: those of the cluster. ``declared``: see
    `ClusterPicture.with_fields`. ``namespace``: of objects that name none. ``features``: those
    of the API server and its controllers.
    """
    errors = InputErrors()
    parts = _parts(sources, namespace, errors)
    taken, unchanged = _taken(parts, cluster)
    own = [_with_uid(part, taken) for part in parts if _key(part.value) not in unchanged]
    if are_shapes:
        own = [structs.replace(part, value=_with_pods(part.value, cluster)) for part in own]
    keys = {key for part in own if (key := _key(part.value)) is not None}
    context = _context(keys, taken, cluster, features)
    workload = load_inputs(
        [*context, *own],
        read_kinds=read_kinds,
        expansion=ExpansionMode.ONCE,
        admission=admission or cluster.admission,
        present=cluster.objects,
        reads_all=True,
    )
    if scheduler_name is not None:
        workload = workload.for_scheduler(scheduler_name)
    if len(own) == 1:
        # Whoever names one controller counts its pods in the answer.
        workload = structs.replace(workload, created_pods=CreatedPods())
    created = objects_of_workload(
        workload,
        "the workload",
        charged_pods=_charged_pods(keys, cluster),
        features=features,
    ).with_fields(declared)
    present = cluster.objects
    added = [(key, each) for key, each in created.objects if key not in present]
    pods = [cast(Pod, each) for key, each in added if key.kind == POD]
    pending = [pod for pod in pods if not pod.spec.node_name]
    unjudged = tuple(
        one
        for one in _unjudged(own, created.objects, present, workload.ignored_kinds)
        if one.message != NO_FURTHER_PODS or not created.refused_pods
    )
    said = {f"{one.object} {one.message}" for one in unjudged}
    return Additions(
        objects=(
            *((key.kind, each) for key, each in added if key.kind != POD),
            *((POD, pod) for pod in pods if pod.spec.node_name),
        ),
        pods=tuple(pending),
        notes=(
            *errors.remarks,
            *(note for note in created.notes if note not in said),
            *_needed(own, taken),
            *(f"{key} {_TAKEN_NOTE}" for key in taken if not are_shapes),
            *(f"{key} {_UNCHANGED_NOTE}" for key in unchanged),
        ),
        unjudged=unjudged,
        scheduler_name=scheduler_name,
        refused_pods=created.refused_pods,
    )


def _parts(sources: Iterable[InputSource], namespace: str, errors: InputErrors) -> list[Part]:
    """The objects of the workload. Raises BadInputError."""
    parts = [
        structs.replace(part, value=in_namespace(part.value, namespace))
        for part in read_sources(sources, errors)
        if isinstance(part, Part)
    ]
    errors.raise_if_any()
    if any(own_kind(part.value) for part in parts):
        actual = "found a Scenario or a WhatIf document"
        raise BadInputError(f"{actual}, wanted a workload: pods, controllers, pod groups")
    return parts


def _needed(own: Iterable[Part], taken: Collection[ObjectKey]) -> Iterator[str]:
    """What an API server would refuse about new controllers, because it is missing."""
    for part in own:
        key = _key(part.value)
        if key is None or key.kind not in CONTROLLERS or key in taken or is_admitted(part.value):
            continue
        name = key.name or part.value["metadata"].get("generateName")
        for problem in needed_fields(part.value):
            yield f"an API server refuses {key._replace(name=name)} as it is: {problem}"


def _unjudged(
    own: Iterable[Part],
    created: ObjectStore[ApiObject],
    present: ObjectStore[ApiObject],
    ignored_kinds: Collection[str],
) -> Iterator[UnjudgedWorkload]:
    """The objects of the workload from which no pod came. ``created``: all that the API server in
    memory has."""
    objects = {key: each for key, each in created if key not in present}
    pods = (each for key, each in objects.items() if key.kind == POD)
    with_pods = {uid for pod in pods for uid in _owner_uids(pod)}
    # The ReplicaSet of a new pod may be in the cluster already.
    for each in created.each(REPLICA_SET):
        if each.metadata.uid in with_pods:
            with_pods |= _owner_uids(each)
    for key, content in _named(own, objects).items():
        new = objects.get(key)
        uid = content["metadata"].get("uid") if new is None else new.metadata.uid
        if uid not in with_pods:
            is_read = key.kind not in ignored_kinds
            one = unjudged(key, content, is_present=key in present, is_read=is_read)
            if one is not None:
                yield one


def _named(own: Iterable[Part], objects: Collection[ObjectKey]) -> dict[ObjectKey, Content]:
    """The objects of a workload by key. An object without a name is each one of ``objects`` whose
    name the server may have made of its generateName."""
    named: dict[ObjectKey, Content] = {}
    for part in own:
        key = _key(part.value)
        if key is None:
            continue
        if key.name:
            named[key] = part.value
            continue
        prefix = part.value["metadata"].get("generateName") or ""
        made = [each for each in objects if each._replace(name="") == key]
        named |= {each: part.value for each in made if each.name.startswith(prefix)}
    return named


def _owner_uids(each: ApiObject) -> set[str]:
    return {owner.uid for owner in each.metadata.owner_references or ()}


def _with_pods(content: Content, cluster: ClusterPicture) -> Content:
    """A controller with a new pod, whatever its number of replicas is."""
    spec, key = content.get("spec"), _key(content)
    if key is None or key.kind not in CONTROLLERS or not spec:
        return content
    counts = ("replicas", "parallelism", "completions")
    changed: dict[str, Any] = {name: 1 for name in counts if spec.get(name) == 0}
    present, replicas = cluster.objects.get(key), spec.get("replicas", 1)
    if present is not None and key.kind in REPLICATED and isinstance(replicas, int):
        pod_count = sum(1 for _ in _owned({key: present}, cluster))
        changed["replicas"] = max(replicas, pod_count) + 1
        if key.kind == STATEFUL_SET:
            # Its next pod, also if a pod before it waits.
            changed["podManagementPolicy"] = "Parallel"
    held_back = [name for name in ("suspend", "paused") if spec.get(name)]
    changed |= dict.fromkeys(held_back, False)
    return {**content, "spec": {**spec, **changed}} if changed else content


def _taken(
    parts: Iterable[Part], cluster: ClusterPicture
) -> tuple[dict[ObjectKey, ApiObject], list[ObjectKey]]:
    """The controllers of the workload that are in the cluster, as they are there, and the keys of
    other objects that are there.

    Raises BadInputError for a pod that is in the cluster.
    """
    present = cluster.objects
    keys = [key for part in parts if (key := _key(part.value)) is not None and key in present]
    wrong = [key for key in keys if key.kind == POD]
    if wrong:
        raise BadInputError("\n".join(f"{key} {_PRESENT_POD}" for key in wrong))
    taken = {
        key: each
        for key in keys
        if key.kind in CONTROLLERS and (each := present.get(key)) is not None
    }
    return taken, [key for key in keys if key.kind not in (*CONTROLLERS, NAMESPACE)]


def _key(value: Any) -> ObjectKey | None:
    """The key of an object; None for a value that is none: the checks of the input say why."""
    try:
        return key_of(value)
    except (AttributeError, KeyError, TypeError):
        return None


def _with_uid(part: Part, taken: Mapping[ObjectKey, ApiObject]) -> Part:
    """A controller that is in the cluster keeps its uid: its pods refer to it."""
    key = _key(part.value)
    present = None if key is None else taken.get(key)
    if present is None:
        return part
    metadata = {**part.value["metadata"], "uid": present.metadata.uid}
    return structs.replace(part, value={**part.value, "metadata": metadata})


def _context(
    keys: Collection[ObjectKey],
    taken: Mapping[ObjectKey, ApiObject],
    cluster: ClusterPicture,
    features: ApiFeatures,
) -> list[Content]:
    """The objects of the cluster that admission and controllers read, without those that the
    workload brings. ``keys``: those of the workload."""
    objects = {
        key: each
        for key, each in (
            *_read_by_admission(keys, cluster),
            *_owned(taken, cluster),
            *_counted(keys, cluster),
            *made_into_claims({key.namespace for key in keys}, cluster.objects, features),
        )
        if key not in keys
    }
    return [
        cluster.manifest(key, each) or with_kind(key.kind, plain(each))
        for key, each in objects.items()
    ]


def _read_by_admission(
    keys: Collection[ObjectKey], cluster: ClusterPicture
) -> Iterator[tuple[ObjectKey, ApiObject]]:
    has_daemons = any(key.kind == DAEMON_SET for key in keys)
    for kind in (*_READ_BY_ADMISSION, *((NODE,) if has_daemons else ())):
        yield from cluster.objects.items(kind)


def made_into_claims(
    namespaces: Collection[str], objects: ObjectStore[ApiObject], features: ApiFeatures
) -> Iterator[tuple[ObjectKey, ApiObject]]:
    """What decides which claims of devices the pods of these namespaces get: templates, and the
    groups that have claims, with these."""
    group_kinds = UPSTREAM_KINDS if features.has_group_claims else ()
    uids = set[str | None]()
    for kind in (*group_kinds, RESOURCE_CLAIM_TEMPLATE):
        for key, each in objects.items(kind):
            if key.namespace in namespaces:
                uids.add(each.metadata.uid)
                yield key, each
    for key, each in objects.items(RESOURCE_CLAIM) if group_kinds else ():
        if key.namespace in namespaces and not uids.isdisjoint(_owner_uids(each)):
            yield key, each


def _counted(
    keys: Collection[ObjectKey], cluster: ClusterPicture
) -> Iterator[tuple[ObjectKey, ApiObject]]:
    """The objects in namespaces of the workload whose number or size a quota limits, except
    controllers, which would create pods again, and pods; see `_charged_pods`."""
    quotas: dict[str, list[ResourceQuota]] = {}
    namespaces = {key.namespace for key in keys}
    for quota in cluster.of(RESOURCE_QUOTA):
        if quota.metadata.namespace in namespaces:
            quotas.setdefault(quota.metadata.namespace, []).append(cast(ResourceQuota, quota))
    if not quotas:
        return
    for kind in cluster.objects.kinds():
        if kind == POD or kind in CONTROLLERS:
            continue
        limited = {
            namespace
            for namespace, each in quotas.items()
            if any(may_count(quota, kind) for quota in each)
        }
        for key, each in cluster.objects.items(kind) if limited else ():
            if key.namespace in limited:
                yield key, each


def _charged_pods(keys: Collection[ObjectKey], cluster: ClusterPicture) -> list[Pod]:
    """The pods in namespaces of the workload that have a quota. They count without being created
    again, because a namespace may have thousands of them."""
    limited = {each.metadata.namespace for each in cluster.of(RESOURCE_QUOTA)}
    namespaces = limited.intersection(key.namespace for key in keys)
    pods = cluster.objects.items(POD) if namespaces else ()
    return [cast(Pod, pod) for key, pod in pods if key.namespace in namespaces]


def _owned(
    taken: Mapping[ObjectKey, ApiObject], cluster: ClusterPicture
) -> Iterator[tuple[ObjectKey, ApiObject]]:
    """The pods that the controllers have in the cluster.

    The ReplicaSets of a Deployment stay out: the Deployment then counts their pods itself, and does
    not leave the number of pods to them.
    """
    uids = {uid for each in taken.values() if (uid := each.metadata.uid)}
    objects = cluster.objects
    owned = [key for uid in uids for key in objects.owned_by(uid)]
    sets = (objects.get(key) for key in owned if key.kind == REPLICA_SET)
    uids |= {uid for each in sets if each is not None and (uid := each.metadata.uid)}
    pods = {key for uid in uids for key in objects.owned_by(uid) if key.kind == POD}
    for key in sorted(pods, key=objects.arrival):
        pod = objects.get(key)
        assert pod is not None
        yield key, pod


@final
class AdditionsReader:
    """Reads workloads against the objects of a model as they are at that time."""

    def __init__(
        self,
        model: ClusterModel,
        read_kinds: Collection[str] = (),
        scheduler_name: str | None = DEFAULT_SCHEDULER,
        *,
        admission: PluginSet | None = None,
        namespace: str = DEFAULT_NAMESPACE,
    ) -> None:
        """See `read_additions`."""
        self._model = model
        self._read_kinds = read_kinds
        self._scheduler_name = scheduler_name
        self._admission = admission
        self._namespace = namespace

    def __call__(self, sources: Iterable[InputSource], *, are_shapes: bool = False) -> Additions:
        """See `read_additions`. Raises BadInputError."""
        return read_additions(
            sources,
            replace(self._model.source, objects=self._model.store),
            self._read_kinds,
            self._scheduler_name,
            are_shapes=are_shapes,
            admission=self._admission,
            declared=self._model.scheduler.declared_fields,
            namespace=self._namespace,
            features=api_features(self._model.config.gates),
        )
