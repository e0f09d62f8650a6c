"""The kinds that admission reads: RuntimeClass, LimitRange and ResourceQuota.

Upstream: k8s.io/api/node/v1, k8s.io/api/core/v1.
"""

from bayplan.api.object_meta import Api, ObjectMeta, Quantities, Strings, Toleration

RUNTIME_CLASS = "node.k8s.io/v1 RuntimeClass"
LIMIT_RANGE = "v1 LimitRange"
RESOURCE_QUOTA = "v1 ResourceQuota"
#: These kinds, in the order in which admission reads them.
ADMISSION_KINDS = (LIMIT_RANGE, RUNTIME_CLASS, RESOURCE_QUOTA)


# ---- RuntimeClass ---------------------------------------------------------------------------


class RuntimeOverhead(Api):
    pod_fixed: Quantities | None = None


class RuntimeScheduling(Api):
    node_selector: Strings | None = None
    tolerations: tuple[Toleration, ...] | None = None


class RuntimeClass(Api):
    metadata: ObjectMeta = ObjectMeta()
    handler: str = ""
    overhead: RuntimeOverhead | None = None
    scheduling: RuntimeScheduling | None = None


# ---- LimitRange -----------------------------------------------------------------------------


class LimitRangeItem(Api):
    """Limits of all objects of one type: Container, Pod or PersistentVolumeClaim."""

    type: str = ""
    min: Quantities | None = None
    max: Quantities | None = None
    default: Quantities | None = None
    default_request: Quantities | None = None
    max_limit_request_ratio: Quantities | None = None


class LimitRangeSpec(Api):
    limits: tuple[LimitRangeItem, ...] | None = None


class LimitRange(Api):
    metadata: ObjectMeta = ObjectMeta()
    spec: LimitRangeSpec = LimitRangeSpec()


# ---- ResourceQuota --------------------------------------------------------------------------


class ScopeRequirement(Api):
    scope_name: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


class ScopeSelector(Api):
    match_expressions: tuple[ScopeRequirement, ...] | None = None


class ResourceQuotaSpec(Api):
    hard: Quantities | None = None
    scopes: tuple[str, ...] | None = None
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(Api):
    hard: Quantities | None = None
    used: Quantities | None = None


class ResourceQuota(Api):
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()
