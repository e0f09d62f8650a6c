"""KubeSchedulerConfiguration v1 as structs, field by field.

Field names, types and defaults are those of kubescheduler.config.k8s.io/v1 of Kubernetes v1.37.
Bayplan adds four fields: `featureGates`, which kube-scheduler reads from the command line,
`plugins.tieBreak`, `reuse` and `podGroups`. `validation` checks what these types cannot express.
Upstream: kube-scheduler/config/v1, component-base/config.

Upstream names an extender by its URL. If two extenders have the same URL, `named_extenders` adds
the index to the name.
"""

from collections.abc import Sequence
from typing import Annotated, Any, TypeVar, dataclass_transform

from msgspec import Meta, Struct, field, structs

from bayplan.api.objects import DEFAULT_SCHEDULER
from bayplan.api.quantity import INT64_MAX
from bayplan.durations import Duration, duration_seconds
from bayplan.ports import ExtenderVerb

# ---- schema ---------------------------------------------------------------------------------


API_VERSION = "kubescheduler.config.k8s.io/v1"
KIND = "KubeSchedulerConfiguration"

OWN_LEASE = "bayplan"
KUBE_SCHEDULER_LEASE, KUBE_SCHEDULER_NAMESPACE = "kube-scheduler", "kube-system"

INT32_MAX = 2**31 - 1

Percentage = Annotated[int, Meta(ge=0, le=100)]
Positive32 = Annotated[int, Meta(ge=1, le=INT32_MAX)]
Positive64 = Annotated[int, Meta(ge=1, le=INT64_MAX)]
Natural32 = Annotated[int, Meta(ge=0, le=INT32_MAX)]
Int64 = Annotated[int, Meta(ge=-INT64_MAX - 1, le=INT64_MAX)]


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class _Part(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The base of all parts of a configuration."""


class LeaderElection(_Part):
    """One of several replicas leads; the others are standbys.

    Of two schedulers with one lease, only one is active. So the default name depends on the
    profiles: a scheduler for the pods of `default-scheduler` must never be active beside
    kube-scheduler, and shares its lease.
    """

    leader_elect: bool = True
    lease_duration: Duration = "15s"
    renew_deadline: Duration = "10s"
    retry_period: Duration = "2s"
    resource_lock: str = "leases"
    #: "": `KUBE_SCHEDULER_LEASE` if a profile is `default-scheduler`, otherwise `OWN_LEASE`.
    resource_name: str = ""
    #: "": the namespace of the scheduler; for kube-scheduler's lease, kube-scheduler's namespace.
    resource_namespace: str = ""


class ClientConnection(_Part):
    """The connection to the API server."""

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = "application/vnd.kubernetes.protobuf"
    qps: float = 50.0
    burst: Natural32 = 100


class PluginEntry(_Part):
    """One entry of a plugin set. ``weight``: of the scores; 0 means 1."""

    name: str = ""
    weight: Natural32 = 0


class PluginSet(_Part):
    """Plugins enabled besides the defaults, and disabled defaults; "*" means all of them."""

    enabled: tuple[PluginEntry, ...] = ()
    disabled: tuple[PluginEntry, ...] = ()


class Plugins(_Part):
    """The plugins of a profile by extension point; ``multiPoint``: at all their extension points.

    Three extension points are for pod groups. The last field is Bayplan's own.
    """

    multi_point: PluginSet = PluginSet()
    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()
    placement_generate: PluginSet = PluginSet()
    placement_score: PluginSet = PluginSet()
    pod_group_post_filter: PluginSet = PluginSet()
    #: Bayplan's own: the keys that decide, in order, among nodes with equal totals.
    tie_break: PluginSet = PluginSet()

    def by_point(self) -> dict[str, PluginSet]:
        """Extension point as written → its set; multiPoint is not one."""
        return {
            point.encode_name: getattr(self, point.name)
            for point in structs.fields(self)
            if point.name != "multi_point"
        }


class PluginConfig(_Part):
    """The arguments of one plugin instance; decoded when the plugin is known."""

    name: str = ""
    args: dict[str, Any] = field(default_factory=dict[str, Any])


class Profile(_Part):
    """A scheduler name and the plugins for its pods."""

    #: None: default-scheduler, if this is the only profile.
    scheduler_name: str | None = None
    #: None: the configuration's.
    percentage_of_nodes_to_score: Percentage | None = None
    plugins: Plugins = Plugins()
    plugin_config: tuple[PluginConfig, ...] = ()
    #: Bayplan's own: whether results are cached for pods with equal signatures.
    reuse: bool = True
    #: Bayplan's own: whether a plugin fails if it reads a part of a pod that it does not sign.
    strict_signatures: bool = False


class ReuseLimits(_Part):
    """Bayplan's own: the limits of the results cache of each profile."""

    max_bytes: Positive64 = 64 * 2**20


class PodGroupKindSettings(_Part):
    """A kind of pod groups with the fields of the Coscheduling plugin's PodGroup."""

    group: str = ""
    version: str = ""
    kind: str = "PodGroup"
    #: The label with which pods name their group.
    label: str = ""


class TopologyLevelSettings(_Part):
    """A level of the topology: a name for a node label."""

    name: str = ""
    node_label: str = ""


class PodGroupSettings(_Part):
    """Bayplan's own: settings for pod groups."""

    #: Seconds after a group's first attempt from which nodes may be reserved for it; 0: never.
    reserve_after_seconds: Natural32 = 0
    #: Whether members of an assembling group get a condition and events that say so.
    report_assembling: bool = False
    #: The most assignments of the search for nodes for all members at once, which is made if
    #: members placed one after another do not fit; 0: no search.
    search_steps: Natural32 = 20_000
    #: Whether groups of scheduling.k8s.io are searched for, too. kube-scheduler makes no search.
    search_for_kubernetes_groups: bool = False
    #: The levels of the topology, the outermost first; annotations of groups may use their names.
    topology: tuple[TopologyLevelSettings, ...] = ()
    #: Kinds besides the built-in ones.
    kinds: tuple[PodGroupKindSettings, ...] = ()


class ExtenderTLSConfig(_Part):
    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: bytes = b""
    key_data: bytes = b""
    ca_data: bytes = b""


class ExtenderManagedResource(_Part):
    name: str = ""
    ignored_by_scheduler: bool = False


class Extender(_Part):
    """A scheduler extender: an HTTP service that takes part in decisions."""

    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: Int64 = 0
    bind_verb: str = ""
    enable_https: bool = field(name="enableHTTPS", default=False)
    tls_config: ExtenderTLSConfig | None = None
    http_timeout: Duration = "5s"
    node_cache_capable: bool = False
    managed_resources: tuple[ExtenderManagedResource, ...] = ()
    ignorable: bool = False


class KubeSchedulerConfiguration(_Part):
    """A whole configuration."""

    api_version: str = ""
    kind: str = ""
    parallelism: Positive32 = 16
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    enable_profiling: bool = True
    #: None: as enableProfiling.
    enable_contention_profiling: bool | None = None
    #: 0: all nodes are evaluated; kube-scheduler evaluates a share that depends on their number.
    percentage_of_nodes_to_score: Percentage = 0
    pod_initial_backoff_seconds: Positive64 = 1
    pod_max_backoff_seconds: Int64 = 10
    profiles: tuple[Profile, ...] = ()
    extenders: tuple[Extender, ...] = ()
    delay_cache_until_active: bool = False
    feature_gates: dict[str, bool] = field(default_factory=dict[str, bool])
    reuse: ReuseLimits = ReuseLimits()
    pod_groups: PodGroupSettings = PodGroupSettings()


def with_defaults(spec: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
    """The configuration with defaults in place of empty and zero values.

    Upstream: SetDefaults_KubeSchedulerConfiguration.
    """
    profiles = spec.profiles or (Profile(),)
    if len(profiles) == 1 and profiles[0].scheduler_name is None:
        profiles = (structs.replace(profiles[0], scheduler_name=DEFAULT_SCHEDULER),)
    contention = spec.enable_contention_profiling
    return structs.replace(
        spec,
        profiles=profiles,
        enable_contention_profiling=spec.enable_profiling if contention is None else contention,
        leader_election=_with_lease(_filled(spec.leader_election), profiles),
        client_connection=_filled(spec.client_connection),
        extenders=tuple(_filled(extender) for extender in spec.extenders),
    )


def _with_lease(election: LeaderElection, profiles: tuple[Profile, ...]) -> LeaderElection:
    if election.resource_name:
        return election
    if not any(profile.scheduler_name == DEFAULT_SCHEDULER for profile in profiles):
        return structs.replace(election, resource_name=OWN_LEASE)
    namespace = election.resource_namespace or KUBE_SCHEDULER_NAMESPACE
    return structs.replace(
        election, resource_name=KUBE_SCHEDULER_LEASE, resource_namespace=namespace
    )


_DURATIONS = frozenset(("lease_duration", "renew_deadline", "retry_period", "http_timeout"))

P = TypeVar("P", bound=_Part)


def _filled(part: P) -> P:
    """``part`` with defaults for fields that are empty or zero. False stays False."""
    unset = {
        name: default
        for name, default in zip(part.__struct_fields__, part.__struct_defaults__, strict=True)
        if _is_unset(name, getattr(part, name))
    }
    return structs.replace(part, **unset)


def _is_unset(name: str, value: Any) -> bool:
    if name in _DURATIONS:
        return duration_seconds(value) == 0
    return not value and not isinstance(value, bool)


# ---- extenders ------------------------------------------------------------------------------


def named_extenders(entries: Sequence[Extender]) -> dict[str, Extender]:
    """In the order of the configuration."""
    extenders: dict[str, Extender] = {}
    for index, entry in enumerate(entries):
        name = entry.url_prefix
        extenders[f"{name} (extenders[{index}])" if name in extenders else name] = entry
    return extenders


def verb_paths(entry: Extender) -> dict[ExtenderVerb, str]:
    """The verbs of an extender, and the path of each below its URL."""
    paths = {
        ExtenderVerb.FILTER: entry.filter_verb,
        ExtenderVerb.PRIORITIZE: entry.prioritize_verb,
        ExtenderVerb.PREEMPT: entry.preempt_verb,
        ExtenderVerb.BIND: entry.bind_verb,
    }
    return {verb: path for verb, path in paths.items() if path}


def ignored_resources(entries: Sequence[Extender]) -> tuple[str, ...]:
    """The resources that NodeResourcesFit ignores, by `ignoredByScheduler`."""
    managed = (resource for entry in entries for resource in entry.managed_resources)
    return tuple(resource.name for resource in managed if resource.ignored_by_scheduler)
