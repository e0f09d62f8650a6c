"""What the objects of a workload need that this scheduler does not have.

A pod whose claims nobody looks at would be bound all the same, only faster: such a number would be
a lie. So a workload that hangs on a plugin which is not here yet is refused with the plugin's name.
"""

from collections.abc import Iterable, Iterator

from bayplan.adapters.object_names import Content, kind_of
from bayplan.api.objects import NODE, POD
from bayplan.config.feature_gates import FeatureGates
from bayplan.plugins.registry import Registry

_VOLUMES = ("VolumeBinding", "VolumeRestrictions", "NodeVolumeLimits", "VolumeZone")


#: Alpha features without which claims would be served otherwise, or not at all.
_FEATURES = (
    "DRADerivedAttributes",
    "DRADeviceCompatibilityGroups",
    "DRAFractionalCapacityRange",
    "DRAListTypeAttributes",
    "DRANodeAllocatableResources",
    "DRAOptionalNodeOperations",
    "DRAWorkloadResourceClaims",
)


def features_missing(gates: FeatureGates, registry: Registry) -> Iterator[str]:
    """What is switched on for a workload, and no plugin knows."""
    plugins = filter(None, map(registry.find, registry.names))
    known = {name for plugin in plugins for name in plugin.gates}
    for name in _FEATURES:
        if gates.enabled(name) and name not in known:
            yield f"the feature {name} is not here yet"


def missing_for(contents: Iterable[Content], registry: Registry) -> Iterator[str]:
    """Why these objects cannot be measured, one line for each reason."""
    for content in contents:
        for what, plugins in _needs(content):
            absent = [name for name in plugins if registry.find(name) is None]
            if absent:
                verb = "is" if len(absent) == 1 else "are"
                yield f"{what} need {', '.join(absent)}, which {verb} not here yet"


def _needs(content: Content) -> Iterator[tuple[str, tuple[str, ...]]]:
    kind = kind_of(content)
    if kind == POD:
        spec = content.get("spec") or {}
        if spec.get("resourceClaims"):
            yield "pods with resource claims", ("DynamicResources",)
        if spec.get("schedulingGroup"):
            yield "pods of a group", ("GangScheduling",)
        if any(
            "persistentVolumeClaim" in one or "ephemeral" in one
            for one in spec.get("volumes") or ()
        ):
            yield "pods with volume claims", _VOLUMES
    elif kind == NODE and (content.get("status") or {}).get("declaredFeatures"):
        yield "nodes that declare features", ("NodeDeclaredFeatures",)
    elif kind.endswith(" DeviceClass") and (content.get("spec") or {}).get("extendedResourceName"):
        yield "extended resources of devices", ("DynamicResources",)
