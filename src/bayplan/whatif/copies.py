"""Further copies of the pods of a workload, with the objects that each copy has for itself.

A copy of a pod has a name of its own. The claims that were made for the pod have copies with names
of their own, too: those of a StatefulSet's templates, of ephemeral volumes, and of resource claim
templates. A copy of a pod group has copies of all members. Everything else is shared, as between
the pods of one template.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import count
from typing import final

from msgspec import structs

from bayplan.api.device_objects import RESOURCE_CLAIM
from bayplan.api.objects import (
    PERSISTENT_VOLUME_CLAIM,
    ApiObject,
    Pod,
    PodSchedulingGroup,
    Unstructured,
)
from bayplan.api.pod_groups import GroupKey, PodGroupKinds, key_of
from bayplan.api.pod_requests import requested
from bayplan.model.additions import Additions
from bayplan.model.picture import RefusedPod
from bayplan.objects.workloads import workload_of
from bayplan.problems import BadInputError

#: (kind, object)
Added = tuple[str, ApiObject]

_CLAIM_KINDS = (PERSISTENT_VOLUME_CLAIM, RESOURCE_CLAIM)
_SUFFIX = "-more-{}"


@final
class Unit:
    """What a question counts: the pods of the only template of a workload, or its only pod
    group."""

    def __init__(
        self,
        name: str,
        pods: list[Pod],
        refused: list[RefusedPod],
        *,
        objects: Iterable[Added],
        kinds: PodGroupKinds,
    ) -> None:
        """``name``: "Deployment default/web" or "PodGroup default/g", for example."""
        #: The workload.
        self.name = name
        self._group = _group_of([*pods, *(one.pod for one in refused)][0], kinds)
        #: Why the API server refuses the first pod, or a pod of the group; "": it does not.
        self.refusal = refused[0].reason if refused and (self._group or not pods) else ""
        if self.refusal:
            pods = [*pods, *(one.pod for one in refused)]
        #: The pods of the original.
        self.pods = pods if self._group is not None else pods[:1]
        self._kinds = kinds
        self._own: list[Added] = []
        #: The objects that all copies share, in the order of their creation.
        self.shared: list[Added] = []
        self._divide(objects)

    def requests(self) -> dict[str, int]:
        """What the pods of a copy request together: cpu in millicores, others in whole units."""
        total: Counter[str] = Counter()
        for pod in self.pods:
            total.update(requested(pod))
        return {name: amount for name, amount in sorted(total.items()) if amount}

    def copies(self) -> Iterator[tuple[list[Added], list[Pod]]]:
        """Yields copies without end, as (objects, pods). The first one is the original."""
        yield self._own, self.pods
        for number in count(2):
            suffix = _SUFFIX.format(number)
            objects = [(kind, self._object_copy(kind, each, suffix)) for kind, each in self._own]
            yield objects, [self._pod_copy(pod, suffix) for pod in self.pods]

    # ---- what a copy has for itself ---------------------------------------------------------

    def _divide(self, objects: Iterable[Added]) -> None:
        """Note which objects each copy has for itself: the group, and claims of its pods."""
        pods = {pod.metadata.uid for pod in self.pods}
        claims = {name for pod in self.pods for name in _named_claims(pod)}
        for kind, each in objects:
            is_of_pod = any(owner.uid in pods for owner in each.metadata.owner_references or ())
            is_group = kind in self._kinds and key_of(kind, each.metadata) == self._group
            is_claim = kind in _CLAIM_KINDS and (is_of_pod or each.metadata.name in claims)
            (self._own if is_group or is_claim else self.shared).append((kind, each))

    def _object_copy(self, kind: str, each: ApiObject, suffix: str) -> ApiObject:
        owners = each.metadata.owner_references or ()
        own_names = {pod.metadata.name for pod in self.pods}
        changed = tuple(
            structs.replace(owner, name=f"{owner.name}{suffix}", uid=f"{owner.uid}{suffix}")
            if owner.name in own_names
            else owner
            for owner in owners
        )
        name = self._claim_copy(each.metadata.name, suffix)
        metadata = structs.replace(
            each.metadata,
            name=name,
            uid=_uid(each, suffix),
            owner_references=changed or None,
        )
        if isinstance(each, Unstructured):
            content = {**each.content, "metadata": {**each.content["metadata"], "name": name}}
            return structs.replace(each, metadata=metadata, content=content)
        return structs.replace(each, metadata=metadata)

    def _claim_copy(self, name: str, suffix: str) -> str:
        """The copy of a claim. The claim of an ephemeral volume is named after its pod."""
        for pod in self.pods:
            for volume in pod.spec.volumes or ():
                if volume.ephemeral and name == f"{pod.metadata.name}-{volume.name}":
                    return f"{pod.metadata.name}{suffix}-{volume.name}"
        return f"{name}{suffix}"

    def _pod_copy(self, pod: Pod, suffix: str) -> Pod:
        own = {each.metadata.name for _, each in self._own}
        labels, spec, status = pod.metadata.labels, pod.spec, pod.status
        if self._group is not None:
            group_labels = {label for _, label in self._kinds.labels}
            labels = {
                key: f"{value}{suffix}" if key in group_labels else value
                for key, value in (labels or {}).items()
            }
            if spec.scheduling_group is not None:
                name = f"{spec.scheduling_group.pod_group_name}{suffix}"
                spec = structs.replace(
                    spec, scheduling_group=PodSchedulingGroup(pod_group_name=name)
                )
        if own and spec.volumes:
            volumes = tuple(
                structs.replace(
                    volume,
                    persistent_volume_claim=structs.replace(
                        claim, claim_name=f"{claim.claim_name}{suffix}"
                    ),
                )
                if (claim := volume.persistent_volume_claim) and claim.claim_name in own
                else volume
                for volume in spec.volumes
            )
            spec = structs.replace(spec, volumes=volumes)
        if status.resource_claim_statuses:
            status = structs.replace(
                status,
                resource_claim_statuses=tuple(
                    structs.replace(each, resource_claim_name=f"{each.resource_claim_name}{suffix}")
                    if each.resource_claim_name in own
                    else each
                    for each in status.resource_claim_statuses
                ),
            )
        metadata = structs.replace(
            pod.metadata,
            name=f"{pod.metadata.name}{suffix}",
            uid=_uid(pod, suffix),
            labels=labels,
        )
        return structs.replace(pod, metadata=metadata, spec=spec, status=status)


def _uid(each: ApiObject, suffix: str) -> str | None:
    return None if each.metadata.uid is None else f"{each.metadata.uid}{suffix}"


def _group_of(pod: Pod, kinds: PodGroupKinds) -> GroupKey | None:
    group = pod.spec.scheduling_group
    return kinds.membership(
        pod.metadata.namespace or "",
        pod.metadata.labels,
        None if group is None else group.pod_group_name,
    )


def _named_claims(pod: Pod) -> Iterator[str]:
    for volume in pod.spec.volumes or ():
        claim = volume.persistent_volume_claim
        if claim is not None and claim.claim_name.endswith(f"-{pod.metadata.name}"):
            yield claim.claim_name  # of a StatefulSet's template
        elif volume.ephemeral is not None:
            yield f"{pod.metadata.name}-{volume.name}"


def units_of(additions: Additions, kinds: PodGroupKinds) -> list[Unit]:
    """The workloads and pod groups of some additions, in the order of their pods."""
    pods: defaultdict[str, list[Pod]] = defaultdict(list)
    refused: defaultdict[str, list[RefusedPod]] = defaultdict(list)
    for pod in additions.pods:
        pods[_unit_name(pod, kinds)].append(pod)
    for one in additions.refused_pods:
        refused[_unit_name(one.pod, kinds)].append(one)
    return [
        Unit(name, pods[name], refused[name], objects=additions.objects, kinds=kinds)
        for name in dict.fromkeys((*pods, *refused))
    ]


def single_unit(additions: Additions, kinds: PodGroupKinds) -> Unit:
    """The only unit. Raises BadInputError if there are several units or no pods."""
    units = units_of(additions, kinds)
    if len(units) == 1:
        return units[0]
    names = ", ".join(unit.name for unit in units[:5])
    actual = f"{len(units)}: {names}" if units else "no pod to place"
    raise BadInputError(
        f"to count how many fit: found {actual}; wanted one workload or one pod group"
    )


def _unit_name(pod: Pod, kinds: PodGroupKinds) -> str:
    group = _group_of(pod, kinds)
    return workload_of(pod) if group is None else f"PodGroup {group}"
