"""The admission of one server: its plugins, in the order of kube-apiserver."""

from collections.abc import Iterable
from typing import final

from bayplan.adapters.embedded.admission.default_storage_class import DefaultStorageClass
from bayplan.adapters.embedded.admission.default_toleration_seconds import DefaultTolerationSeconds
from bayplan.adapters.embedded.admission.extended_resource_toleration import (
    ExtendedResourceToleration,
)
from bayplan.adapters.embedded.admission.limit_ranger import LimitRanger
from bayplan.adapters.embedded.admission.namespace_lifecycle import NamespaceLifecycle
from bayplan.adapters.embedded.admission.plugin import AdmissionPlugin
from bayplan.adapters.embedded.admission.plugin_set import PluginSet
from bayplan.adapters.embedded.admission.pod_group_protection import PodGroupProtection
from bayplan.adapters.embedded.admission.pod_topology_labels import PodTopologyLabels
from bayplan.adapters.embedded.admission.priority import Priority
from bayplan.adapters.embedded.admission.resource_quota import ResourceQuotaAdmission
from bayplan.adapters.embedded.admission.runtime_class import RuntimeClassAdmission
from bayplan.adapters.embedded.api_features import ApiFeatures
from bayplan.adapters.embedded.versioned_store import VersionedStore
from bayplan.api.objects import ApiObject, Pod
from bayplan.clock import Clock
from bayplan.objects.keys import Content, ObjectKey


@final
class AdmissionChain:
    """The plugins of one server."""

    def __init__(
        self,
        plugins: PluginSet,
        store: VersionedStore,
        clock: Clock,
        *,
        features: ApiFeatures,
        charged_pods: Iterable[Pod] = (),
    ) -> None:
        """``store``: where plugins look up what they need. ``charged_pods``: see
        `ResourceQuotaAdmission`."""
        topology_labels = PodTopologyLabels(store)
        every: tuple[AdmissionPlugin, ...] = (
            NamespaceLifecycle(store),
            LimitRanger(store),
            Priority(store),
            DefaultTolerationSeconds(),
            ExtendedResourceToleration(),
            DefaultStorageClass(store),
            *([PodGroupProtection()] if features.protects_groups else []),
            RuntimeClassAdmission(store),
            topology_labels,
            *(
                [ResourceQuotaAdmission(store, clock, charged_pods)]
                if ResourceQuotaAdmission.name in plugins.names
                else []
            ),
        )
        self._plugins = [each for each in every if each.name in plugins.names]
        #: Plugins that refuse some of the objects that differ only in their name.
        self.counting = [each for each in self._plugins if each.counts_usage]
        #: Changes pods when they are bound; None: nothing does.
        self.topology_labels = topology_labels if topology_labels in self._plugins else None

    @property
    def read_kinds(self) -> tuple[str, ...]:
        """The kinds whose objects decide what the plugins do."""
        return tuple(kind for plugin in self._plugins for kind in plugin.read_kinds)

    def admit(self, key: ObjectKey, content: Content, *, was_admitted: bool) -> Content:
        """A new object with the changes of the plugins. Raises ForbiddenError."""
        for plugin in self._plugins:
            if key.kind in plugin.changed_kinds and (plugin.fills_stored or not was_admitted):
                content = plugin.admit(key, content)
        return content

    def validate(self, key: ObjectKey, content: Content, decoded: ApiObject) -> None:
        """Raises ForbiddenError if a plugin refuses a new object that was not admitted before."""
        for plugin in self._plugins:
            if plugin.refused_kinds is None or key.kind in plugin.refused_kinds:
                plugin.validate(key, content, decoded)
