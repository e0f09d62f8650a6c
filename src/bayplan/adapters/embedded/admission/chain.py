"""The admission of one server: its plugins, in the order of kube-apiserver.

Which plugins run is a value, `PluginSet`. A configuration names changes to the default set as
`--enable-admission-plugins` and `--disable-admission-plugins` of kube-apiserver do.

Upstream: pkg/kubeapiserver/options/plugins.go (AllOrderedPlugins, DefaultOffAdmissionPlugins).
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, final

from bayplan.adapters.embedded.admission.default_storage_class import DefaultStorageClass
from bayplan.adapters.embedded.admission.default_toleration_seconds import DefaultTolerationSeconds
from bayplan.adapters.embedded.admission.extended_resource_toleration import (
    ExtendedResourceToleration,
)
from bayplan.adapters.embedded.admission.limit_ranger import LimitRanger
from bayplan.adapters.embedded.admission.plugin import AdmissionPlugin, is_admitted
from bayplan.adapters.embedded.admission.pod_topology_labels import PodTopologyLabels
from bayplan.adapters.embedded.admission.priority import Priority
from bayplan.adapters.embedded.admission.resource_quota import ResourceQuotaAdmission
from bayplan.adapters.embedded.admission.runtime_class import RuntimeClassAdmission
from bayplan.adapters.embedded.field_validation import Content, ObjectKey
from bayplan.adapters.embedded.object_store import ObjectStore
from bayplan.api.objects import ApiObject
from bayplan.clock import Clock
from bayplan.problems import BadInputError, suggestion

# ---- sets of plugins ------------------------------------------------------------------------


#: The plugins that change or refuse what a scheduler reads, in the order of kube-apiserver.
SIMULATED = (
    LimitRanger.name,
    Priority.name,
    DefaultTolerationSeconds.name,
    ExtendedResourceToleration.name,
    DefaultStorageClass.name,
    RuntimeClassAdmission.name,
    PodTopologyLabels.name,
    ResourceQuotaAdmission.name,
)
_OFF_BY_DEFAULT = (ExtendedResourceToleration.name,)
#: Other plugins that kube-apiserver runs by default. They do nothing here.
_WITHOUT_EFFECT = (
    "CertificateApproval",
    "CertificateSigning",
    "CertificateSubjectRestriction",
    "ClusterTrustBundleAttest",
    "DefaultIngressClass",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook",
    "NamespaceLifecycle",
    "NodeDeclaredFeatureValidator",
    "PersistentVolumeClaimResize",
    "PodGroupProtection",
    "PodResizeValidator",
    "PodSecurity",
    "ServiceAccount",
    "StorageObjectInUseProtection",
    "TaintNodesByCondition",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
)
_ENABLE, _DISABLE = "enable-admission-plugins", "disable-admission-plugins"


class PluginSet(NamedTuple):
    """The names of the plugins that run, in their order."""

    names: tuple[str, ...] = tuple(name for name in SIMULATED if name not in _OFF_BY_DEFAULT)


DEFAULT_PLUGINS = PluginSet()


def plugin_set(enable: Sequence[str] = (), disable: Sequence[str] = ()) -> PluginSet:
    """The default set with changes. Raises BadInputError for a name that is not simulated."""
    for flag, names in ((_ENABLE, enable), (_DISABLE, disable)):
        for name in names:
            _check_name(flag, name)
    both = [name for name in enable if name in disable]
    if both:
        raise BadInputError(f"[{' '.join(both)}] in {_ENABLE} and {_DISABLE} overlapped")
    names = {*DEFAULT_PLUGINS.names, *enable}.difference(disable)
    return PluginSet(tuple(name for name in SIMULATED if name in names))


def _check_name(flag: str, name: str) -> None:
    known = (*SIMULATED, *_WITHOUT_EFFECT)
    if name not in known:
        hint = suggestion(name, known) or f"simulated are {', '.join(SIMULATED)}"
        raise BadInputError(f'{flag} plugin "{name}" is not simulated; {hint}')


# ---- the chain ------------------------------------------------------------------------------


@final
class AdmissionChain:
    """The plugins of one server."""

    def __init__(self, plugins: PluginSet, store: ObjectStore, clock: Clock) -> None:
        """``store``: where plugins look up what they need."""
        topology_labels = PodTopologyLabels(store)
        every: tuple[AdmissionPlugin, ...] = (
            LimitRanger(store),
            Priority(store),
            DefaultTolerationSeconds(),
            ExtendedResourceToleration(),
            DefaultStorageClass(store),
            RuntimeClassAdmission(store),
            topology_labels,
            *([ResourceQuotaAdmission(store, clock)] if _QUOTA in plugins.names else []),
        )
        self._plugins = [each for each in every if each.name in plugins.names]
        self._topology_labels = topology_labels if topology_labels in self._plugins else None

    @property
    def read_kinds(self) -> tuple[str, ...]:
        """The kinds whose objects decide what the plugins do."""
        return tuple(kind for plugin in self._plugins for kind in plugin.read_kinds)

    def admit(self, key: ObjectKey, content: Content) -> Content:
        """A new object with the changes of the plugins. Raises ForbiddenError."""
        plugins = [one for one in self._plugins if key.kind in one.changed_kinds]
        if plugins and is_admitted(content):
            plugins = [one for one in plugins if one.fills_stored]
        for plugin in plugins:
            content = plugin.admit(key, content)
        return content

    def validate(self, key: ObjectKey, content: Content, decoded: ApiObject) -> None:
        """Raises ForbiddenError if a plugin refuses a new object that was not admitted before."""
        for plugin in self._plugins:
            if plugin.refused_kinds is None or key.kind in plugin.refused_kinds:
                plugin.validate(key, content, decoded)

    def bound(self, pod: Content, node_name: str) -> Content:
        """A pod with the changes of the plugins when it is bound to a node."""
        labels = self._topology_labels
        return pod if labels is None else labels.labelled(pod, node_name)

    def validate_usage(self, key: ObjectKey, content: Content, decoded: ApiObject) -> None:
        """`validate` of an object that differs only in its name from one that was created."""
        for plugin in self._plugins:
            if plugin.counts_usage:
                plugin.validate(key, content, decoded)


_QUOTA = ResourceQuotaAdmission.name


def listed_names(text: str) -> Iterable[str]:
    """The names of a comma-separated list."""
    return [name.strip() for name in text.split(",") if name.strip()]
