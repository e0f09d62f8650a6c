"""The kinds of a live cluster that are read, and which of them its API server has.

One list serves all readers: what a scheduler with the configuration reads, whatever the plugins
are, and what a purpose needs besides. A simulation admits pods (`ADMISSION_KINDS`); a question also
changes controllers and counts budgets (`CHANGED_KINDS`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import final

from bayplan.adapters.live.client import ApiClient
from bayplan.adapters.live.discovery import Discovery, Resource
from bayplan.api.admission_objects import ADMISSION_KINDS
from bayplan.api.device_objects import RESOURCE_CLAIM_TEMPLATE
from bayplan.api.disruption_objects import POD_DISRUPTION_BUDGET
from bayplan.api.objects import NAMESPACE, NODE, POD, PRIORITY_CLASS
from bayplan.config import SchedulerConfig
from bayplan.config.pod_group_kinds import group_kinds
from bayplan.plugins.registry import Registry
from bayplan.profile.kinds_in_use import kinds_in_use
from bayplan.serving.discovery import offered_kinds
from bayplan.sim.input.controller_kinds import CONTROLLERS
from bayplan.sim.input.object_checks import AUTOSCALERS

#: Read whatever the plugins are.
ALWAYS = (NAMESPACE, PRIORITY_CLASS, NODE, POD)
#: Without these there is no answer.
NEEDED = (NODE, POD)
#: What a question reads besides: a fix changes the template or the size of a controller, a new node
#: gets daemon pods, and what is added passes admission and gets claims of devices.
CHANGED_KINDS = (
    *ADMISSION_KINDS,
    *CONTROLLERS,
    POD_DISRUPTION_BUDGET,
    RESOURCE_CLAIM_TEMPLATE,
    AUTOSCALERS[0],
)


@final
@dataclass(frozen=True, slots=True)
class ClusterKinds:
    """The kinds of one cluster that are read."""

    #: A name of the cluster.
    name: str
    #: The kinds that the API server has, pods last.
    kinds: tuple[str, ...]
    #: Kinds that the API server does not have.
    absent: frozenset[str] = frozenset()
    resources: Mapping[str, Resource] = field(default_factory=lambda: MappingProxyType({}))


async def cluster_kinds(
    client: ApiClient,
    configs: Sequence[SchedulerConfig],
    registry: Registry,
    further: Iterable[str] = (),
) -> ClusterKinds:
    """The kinds that the plugins of the configurations read, ``further`` ones, and `ALWAYS`.

    Raises ApiError.
    """
    in_use = [kind for config in configs for kind in kinds_in_use(config, registry)]
    versions = dict.fromkeys(
        kind for config in configs for kind in group_kinds(config.spec.pod_groups.kinds)
    )
    return await offered((*in_use, *further), client, tuple(versions))


async def offered(
    kinds: Iterable[str], client: ApiClient, group_versions: Sequence[str] = ()
) -> ClusterKinds:
    """What the API server has of these kinds and of `ALWAYS`.

    ``group_versions``: kinds of pod groups, the versions of an API group oldest first; the newest
    version that the server has is read. Raises ApiError.
    """
    discovery = Discovery(client)
    wanted = dict.fromkeys(kind for kind in (*ALWAYS, *kinds) if kind not in group_versions)
    await discovery.discover((*wanted, *group_versions))
    wanted |= dict.fromkeys(
        offered_kinds(group_versions, lambda kind: discovery.resource(kind) is not None)
    )
    del wanted[POD]
    resources = {kind: discovery.resource(kind) for kind in (*wanted, POD)}
    present = {kind: resource for kind, resource in resources.items() if resource is not None}
    return ClusterKinds(
        client.server,
        tuple(present),
        frozenset(kind for kind in resources if kind not in present),
        MappingProxyType(present),
    )
