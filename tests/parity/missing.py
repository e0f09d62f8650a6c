"""The recorded answers that involve a plugin which does not exist here.

An answer may be skipped only if the record shows that a missing plugin affected it: by a rejection,
by a set of nodes that it narrowed, or by scores. All other answers are compared.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bayplan.api.device_objects import DeviceClass
from bayplan.state.pods import PodInfo
from bayplan.testing.clusters import SampleCluster
from tests.parity.objects import KINDS

Json = dict[str, Any]

#: Extension points of plugins that may be missing, since their classes cannot be inspected.
POST_FILTER = frozenset(("DynamicResources", "DefaultPreemption"))
FIT = "NodeResourcesFit"
DEVICES = "DynamicResources"
#: Fields about one plugin alone.
OWN_FIELDS: Mapping[str, str] = {
    "volumeBindings": "VolumeBinding",
    "allocations": "DynamicResources",
}


@dataclass(frozen=True, slots=True)
class Missing:
    """The profile's plugins that do not exist here, with one pod's recorded answers."""

    plugins: frozenset[str]
    expected: Json
    #: Missing plugins that NodeResourcesFit depends on for this pod.
    behind_fit: tuple[str, ...] = ()
    #: All plugins in order; empty if the configuration has its own order.
    order: Sequence[str] = ()

    def behind(self, plugin: str) -> list[str]:
        """The missing plugins among this plugin and those that it depends on."""
        if plugin in self.plugins:
            return [plugin]
        return list(self.behind_fit) if plugin == FIT else []

    def among(self, names: Iterable[str]) -> list[str]:
        """The missing plugins among ``names``, sorted."""
        return sorted(self.plugins.intersection(names))

    def without_missing(self, entries: Mapping[str, Any]) -> dict[str, Any]:
        """Entries by plugin, without those of missing plugins."""
        return {name: entry for name, entry in entries.items() if name not in self.plugins}

    def in_pre_filter(self) -> list[str]:
        """Missing plugins that rejected the pod or narrowed the nodes in PreFilter."""
        merged = self.expected.get("preFilterResult") or {}
        return self.among((merged.get("plugin", ""), *merged.get("plugins", ())))

    def in_filter(self) -> list[str]:
        """Missing plugins that rejected nodes in PreFilter or Filter."""
        entries = (self.expected.get("filter") or {}).values()
        names = [entry.get("plugin", "") for entry in entries]
        return sorted({*self.in_pre_filter(), *self.among(names), *self.behind_fit})

    def contradicts(self, node: str) -> bool:
        """Whether a missing plugin's rejection of a node contradicts the rest of the record.

        The plugin must have rejected the node alone, too, and no plugin before it. (If pods
        are nominated to the node, they may be the reason; the caller checks that.)
        """
        entry: Json = (self.expected.get("filter") or {}).get(node) or {}
        plugin = entry.get("plugin", "")
        if plugin not in self.plugins or entry.get("code") == "Error":
            return False
        alone: Mapping[str, Mapping[str, Json]] = self.expected.get("filterByPlugin") or {}
        reports = {name: value for name, value in entry.items() if name != "plugin"}
        before = self.order[: self.order.index(plugin)] if self.order else ()
        earlier = any(node in alone.get(name, {}) for name in before)
        return earlier or alone.get(plugin, {}).get(node) != reports

    def in_error(self) -> list[str]:
        """Missing plugins that may have caused a recorded error: by code or by text."""
        alone = {name: [entry] for name, entry in (self.expected.get("preFilter") or {}).items()}
        for name, entries in (self.expected.get("filterByPlugin") or {}).items():
            alone.setdefault(name, []).extend(entries.values())
        erring = [
            name
            for name, entries in alone.items()
            if any(entry.get("code") == "Error" for entry in entries)
        ]
        text = self.expected.get("error", "")
        return sorted({*self.among(erring), *(name for name in self.plugins if name in text)})

    def in_post_filter(self) -> list[str]:
        """Missing plugins that affected the result of PostFilter.

        DynamicResources is named if it is the first plugin and gave no reason. It ends
        PostFilter with an error if its PreFilter did not run.
        """
        recorded = self.expected.get("postFilter")
        if recorded is None:
            return []
        if "DefaultPreemption" in self.plugins:
            return self.among(POST_FILTER)
        return self.among([recorded.get("plugin", "")]) if recorded.get("code") == "Error" else []

    def weighted(self) -> dict[str, int]:
        """Node → the recorded weighted scores of missing plugins."""
        sums: dict[str, int] = {}
        for plugin, entries in (self.expected.get("scores") or {}).items():
            if plugin in self.plugins:
                for name, scores in entries.items():
                    sums[name] = sums.get(name, 0) + scores.get("weighted", 0)
        return sums

    def in_choice(self) -> list[str]:
        """Missing plugins that gave nodes different scores, and so affected the choice."""
        if len(set(self.weighted().values())) <= 1:
            return []
        return self.among(self.expected.get("scores") or {})


def behind_fit(missing: frozenset[str], pod: PodInfo, cluster: SampleCluster) -> tuple[str, ...]:
    """DynamicResources, if it is missing and devices represent a resource that the pod requests.

    NodeResourcesFit then leaves the resource to it on nodes that do not offer it themselves.
    """
    return (DEVICES,) if DEVICES in missing and stand_for_requests(pod, cluster) else ()


def stand_for_requests(pod: PodInfo, cluster: SampleCluster) -> bool:
    """Whether devices represent a resource that the pod requests."""
    names: set[str] = set()
    for device_class in cluster.objects(KINDS["deviceClasses"]).list():
        assert isinstance(device_class, DeviceClass)
        names.add(device_class.spec.extended_resource_name or "")
        names.add(f"deviceclass.resource.kubernetes.io/{device_class.metadata.name}")
    return bool(names & set(pod.requests))
