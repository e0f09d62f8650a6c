"""CompositePodGroups: groups of groups, of which enough run together, or none. KEP-6012."""

from typing import Final, final

from bayplan.api.object_meta import Api, Int64, ObjectMeta
from bayplan.api.pod_groups import (
    UPSTREAM_GROUP,
    DisruptionMode,
    GroupKey,
    PodGroupConstraints,
    PodGroupStatus,
)

#: The only version of the kind, under the gate CompositePodGroup.
COMPOSITE_POD_GROUP: Final = f"{UPSTREAM_GROUP}/v1alpha3 CompositePodGroup"


class CompositeGangPolicy(Api):
    min_group_count: Int64 | None = None


class CompositePodGroupPolicy(Api):
    gang: CompositeGangPolicy | None = None


class CompositePodGroupSpec(Api):
    parent_composite_pod_group_name: str | None = None
    scheduling_policy: CompositePodGroupPolicy | None = None
    scheduling_constraints: PodGroupConstraints | None = None
    disruption_mode: DisruptionMode | None = None
    priority: Int64 | None = None
    preemption_policy: str | None = None


@final
class CompositePodGroup(Api):
    """A group whose members are PodGroups and CompositePodGroups, which name it as their parent."""

    metadata: ObjectMeta = ObjectMeta()
    spec: CompositePodGroupSpec = CompositePodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()

    @property
    def key(self) -> GroupKey:
        return composite_key(self.metadata.namespace or "default", self.metadata.name)

    @property
    def parent_key(self) -> GroupKey | None:
        """The key of the group above; None: this is the root of its tree."""
        name = self.spec.parent_composite_pod_group_name
        return None if name is None else composite_key(self.key.namespace, name)

    @property
    def min_group_count(self) -> int:
        """The minimum number of members that run; the basic policy asks for one."""
        policy = self.spec.scheduling_policy
        gang = None if policy is None else policy.gang
        return 1 if gang is None else gang.min_group_count or 0

    @property
    def required_topology(self) -> str:
        """Node label whose value is equal for the nodes of all pods below; "" for none."""
        constraints = self.spec.scheduling_constraints
        topology = () if constraints is None else constraints.topology or ()
        return topology[0].key if topology else ""

    @property
    def leaves_whole(self) -> bool:
        """Whether an eviction of one pod below evicts all pods below."""
        mode = self.spec.disruption_mode
        return mode is not None and mode.all is not None


def composite_key(namespace: str, name: str) -> GroupKey:
    return GroupKey(UPSTREAM_GROUP, namespace, name, is_composite=True)
