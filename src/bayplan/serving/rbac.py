"""The minimal RBAC rules of a scheduler, computed from its configuration.

`bayplan run` checks the same rights at start (adapters.live.access): to read the kinds that its
plugins look up; to write bindings, statuses and events; to write its lease in its own namespace;
and to review the callers of its endpoints.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from bayplan.adapters.live.access import WRITING, Right, group_statuses, rights_to_follow
from bayplan.adapters.live.discovery import Resource
from bayplan.api.admission_objects import ADMISSION_KINDS
from bayplan.api.device_objects import RESOURCE_CLAIM_TEMPLATE
from bayplan.api.object_meta import resource_of
from bayplan.api.objects import (
    NAMESPACE,
    NODE,
    POD,
    PRIORITY_CLASS,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
)
from bayplan.config import SchedulerConfig
from bayplan.config.pod_group_kinds import group_kinds
from bayplan.objects.keys import is_namespaced
from bayplan.plugins.registry import Registry
from bayplan.profile.kinds_in_use import kinds_in_use
from bayplan.profile.resolved_config import resolve

RBAC_VERSION = "rbac.authorization.k8s.io/v1"
_LEASE_GROUP = "coordination.k8s.io"
_RBAC_GROUP = "rbac.authorization.k8s.io"

#: The reviews of the callers of the endpoints.
_REVIEWING = (
    Right("authentication.k8s.io", "tokenreviews", "create"),
    Right("authorization.k8s.io", "subjectaccessreviews", "create"),
)

#: The writes of plugins besides bindings and statuses of pods.
_CLAIMS = "resource.k8s.io"
_PLUGINS_WRITE = {
    "DynamicResources": (
        # Upstream: plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go. An API server with
        # the gate DRAResourceClaimGranularStatusAuthorization asks for resourceclaims/binding.
        *(Right(_CLAIMS, "resourceclaims", verb) for verb in ("create", "delete", "get", "patch")),
        Right(_CLAIMS, "resourceclaims/status", "patch"),
        Right(_CLAIMS, "resourceclaims/binding", "patch"),
        Right("", "pods/finalizers", "update"),
    ),
    "DefaultPreemption": (Right("", "pods", "delete"),),
    "VolumeBinding": (
        Right("", "persistentvolumeclaims", "patch"),
        Right("", "persistentvolumes", "patch"),
    ),
}

Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Names:
    """The names of the roles and of their ServiceAccount."""

    name: str = "bayplan"
    namespace: str = "bayplan"
    service_account: str = "bayplan"


def manifests(config: SchedulerConfig, registry: Registry, names: Names) -> list[Manifest]:
    """Roles and their bindings. Raises ConfigError."""
    election = config.spec.leader_election
    documents = [*_pair("ClusterRole", cluster_rules(config, registry), names, namespace="")]
    if election.leader_elect:
        namespace = election.resource_namespace or names.namespace
        documents += _pair("Role", lease_rules(election.resource_name), names, namespace=namespace)
    return documents


#: What makes pods: a question reads their templates and sizes.
_CONTROLLERS = (
    "apps/v1 Deployment",
    "apps/v1 DaemonSet",
    REPLICA_SET,
    STATEFUL_SET,
    REPLICATION_CONTROLLER,
    "batch/v1 Job",
)


def reading_manifests(config: SchedulerConfig, registry: Registry, names: Names) -> list[Manifest]:
    """A ClusterRole and its binding for `bayplan shadow` and for questions such as `bayplan why`:
    get, list and watch, and nothing else. A question about a workload admits its pods as the API
    server would, so it reads what admission reads, and the templates of their claims.

    Raises ConfigError.
    """
    own = (NODE, POD, NAMESPACE, PRIORITY_CLASS, *ADMISSION_KINDS, *_CONTROLLERS)
    kinds = dict.fromkeys((*own, RESOURCE_CLAIM_TEMPLATE, *kinds_in_use(config, registry)))
    groups = group_kinds(config.spec.pod_groups.kinds)
    rules = list(_rules(_reading(map(_resource, (*kinds, *groups)))))
    return [*_pair("ClusterRole", rules, names, namespace="")]


def following_manifests(
    config: SchedulerConfig, registry: Registry, names: Names, further: Iterable[str]
) -> list[Manifest]:
    """A ClusterRole and its binding for a process that follows what its plugins read, and
    ``further`` kinds, as `bayplan webhook`: list and watch, and nothing else.

    Raises ConfigError.
    """
    kinds = (NODE, POD, NAMESPACE, PRIORITY_CLASS, *further, *kinds_in_use(config, registry))
    groups = group_kinds(config.spec.pod_groups.kinds)
    resources = map(_resource, dict.fromkeys((*kinds, *groups)))
    rules = list(_rules(_reading(resources, ("list", "watch"))))
    return [*_pair("ClusterRole", rules, names, namespace="")]


def _reading(
    resources: Iterable[Resource], verbs: Iterable[str] = ("get", "list", "watch")
) -> Iterator[Right]:
    for resource in resources:
        for verb in verbs:
            yield Right(resource.group, resource.plural, verb)


def cluster_rules(config: SchedulerConfig, registry: Registry) -> list[Manifest]:
    """The rules for all namespaces. Raises ConfigError."""
    groups = group_kinds(config.spec.pod_groups.kinds)
    kinds = (NODE, POD, *kinds_in_use(config, registry), *groups)
    reading = rights_to_follow(map(_resource, kinds))
    statuses = group_statuses(map(_resource, groups))
    return list(_rules((*reading, *rights_to_write(config, registry), *statuses, *_REVIEWING)))


def rights_to_write(config: SchedulerConfig, registry: Registry) -> tuple[Right, ...]:
    """The rights for all writes of the scheduler and its plugins except to groups, and for reads of
    single objects.

    Raises ConfigError.
    """
    plugins = {
        instance.plugin.name
        for profile in resolve(config, registry).profiles
        for instance in profile.instances.values()
    }
    return (*WRITING, *(r for name in sorted(plugins) for r in _PLUGINS_WRITE.get(name, ())))


def lease_rules(lease_name: str) -> list[Manifest]:
    """The rules for the namespace of the lease. `create` cannot be limited to a name."""
    return [
        {"apiGroups": [_LEASE_GROUP], "resources": ["leases"], "verbs": ["create"]},
        {
            "apiGroups": [_LEASE_GROUP],
            "resources": ["leases"],
            "resourceNames": [lease_name],
            "verbs": ["get", "update", "watch"],
        },
    ]


def _resource(kind: str) -> Resource:
    """The resource of a kind, without a request: its plural follows the usual rule."""
    group = kind.partition(" ")[0].rpartition("/")[0]
    return Resource(kind, group, resource_of(kind), is_namespaced(kind))


def _rules(rights: Iterable[Right]) -> Iterator[Manifest]:
    """One rule for all resources of a group with the same verbs."""
    verbs: dict[tuple[str, str], set[str]] = defaultdict(set)
    for right in rights:
        verbs[right.group, right.resource].add(right.verb)
    together: dict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
    for (group, resource), allowed in sorted(verbs.items()):
        together[group, tuple(sorted(allowed))].append(resource)
    for (group, allowed), resources in together.items():
        yield {"apiGroups": [group], "resources": resources, "verbs": list(allowed)}


def _pair(
    kind: str, rules: list[Manifest], names: Names, *, namespace: str
) -> tuple[Manifest, Manifest]:
    """A role and its binding to the ServiceAccount."""
    meta = {"name": names.name, **({"namespace": namespace} if namespace else {})}
    subject = {
        "kind": "ServiceAccount",
        "name": names.service_account,
        "namespace": names.namespace,
    }
    return (
        {"apiVersion": RBAC_VERSION, "kind": kind, "metadata": meta, "rules": rules},
        {
            "apiVersion": RBAC_VERSION,
            "kind": f"{kind}Binding",
            "metadata": meta,
            "roleRef": {"apiGroup": _RBAC_GROUP, "kind": kind, "name": names.name},
            "subjects": [subject],
        },
    )
