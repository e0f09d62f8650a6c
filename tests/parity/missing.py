"""Which recorded answers involve a plugin that does not exist here, and which do not.

An answer may be passed over only where a missing plugin had its share in it, as the record itself
says: a rejection in its name, a node set it narrowed, scores it gave. Whatever it had no share in
is compared.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bayplan.api.device_objects import DeviceClass
from bayplan.state.pods import PodInfo
from bayplan.testing.clusters import SampleCluster
from tests.parity.objects import KINDS

Json = dict[str, Any]

#: Extension points of plugins that may be missing: their classes cannot be asked.
POST_FILTER = frozenset(("DynamicResources", "DefaultPreemption"))
FIT = "NodeResourcesFit"
DEVICES = "DynamicResources"
#: Fields that tell of one plugin alone.
OWN_FIELDS: Mapping[str, str] = {
    "volumeBindings": "VolumeBinding",
    "allocations": "DynamicResources",
}


@dataclass(frozen=True, slots=True)
class Missing:
    """The profile's plugins that do not exist here, against one pod's recorded answers."""

    plugins: frozenset[str]
    wanted: Json
    #: Plugins without whose help NodeResourcesFit cannot judge this pod.
    behind_fit: tuple[str, ...] = ()
    #: All plugins as they follow one another; empty where the configuration says so itself.
    order: Sequence[str] = ()

    def behind(self, plugin: str) -> list[str]:
        """Who is missing where this plugin is asked: itself, or one it depends on."""
        if plugin in self.plugins:
            return [plugin]
        return list(self.behind_fit) if plugin == FIT else []

    def among(self, names: Iterable[str]) -> list[str]:
        """Those of ``names`` that do not exist here, sorted."""
        return sorted(self.plugins.intersection(names))

    def known(self, entries: Mapping[str, Any]) -> dict[str, Any]:
        """Entries by plugin, without those of plugins that do not exist here."""
        return {name: entry for name, entry in entries.items() if name not in self.plugins}

    def in_pre_filter(self) -> list[str]:
        """Who had a share in what PreFilter came to: rejected the pod, or narrowed the nodes."""
        merged = self.wanted.get("preFilterResult") or {}
        return self.among((merged.get("plugin", ""), *merged.get("plugins", ())))

    def in_filter(self) -> list[str]:
        """Who had a share in which nodes are left."""
        entries = (self.wanted.get("filter") or {}).values()
        names = [entry.get("plugin", "") for entry in entries]
        return sorted({*self.in_pre_filter(), *self.among(names), *self.behind_fit})

    def contradicts(self, node: str) -> bool:
        """Whether a missing plugin's rejection of a node is at odds with the rest of the record.

        It must have rejected the node when asked alone, too, and nobody before it. (Where pods
        are nominated to the node, they may have made it so: the caller knows.)
        """
        entry: Json = (self.wanted.get("filter") or {}).get(node) or {}
        plugin = entry.get("plugin", "")
        if plugin not in self.plugins or entry.get("code") == "Error":
            return False
        alone: Mapping[str, Mapping[str, Json]] = self.wanted.get("filterByPlugin") or {}
        reports = {name: value for name, value in entry.items() if name != "plugin"}
        before = self.order[: self.order.index(plugin)] if self.order else ()
        earlier = any(node in alone.get(name, {}) for name in before)
        return earlier or alone.get(plugin, {}).get(node) != reports

    def in_error(self) -> list[str]:
        """Who may be behind a recorded error: one that answered Error itself, or is named in it."""
        alone = {name: [entry] for name, entry in (self.wanted.get("preFilter") or {}).items()}
        for name, entries in (self.wanted.get("filterByPlugin") or {}).items():
            alone.setdefault(name, []).extend(entries.values())
        erring = [
            name
            for name, entries in alone.items()
            if any(entry.get("code") == "Error" for entry in entries)
        ]
        text = self.wanted.get("error", "")
        return sorted({*self.among(erring), *(name for name in self.plugins if name in text)})

    def in_post_filter(self) -> list[str]:
        """Who had a share in what PostFilter came to.

        DynamicResources says nothing as a rule, and is then blamed for being the first; it ends
        PostFilter with an error where its PreFilter did not run.
        """
        recorded = self.wanted.get("postFilter")
        if recorded is None:
            return []
        if "DefaultPreemption" in self.plugins:
            return self.among(POST_FILTER)
        return self.among([recorded.get("plugin", "")]) if recorded.get("code") == "Error" else []

    def weighted(self) -> dict[str, int]:
        """Node → what missing plugins added to its total, as recorded."""
        sums: dict[str, int] = {}
        for plugin, entries in (self.wanted.get("scores") or {}).items():
            if plugin in self.plugins:
                for name, scores in entries.items():
                    sums[name] = sums.get(name, 0) + scores.get("weighted", 0)
        return sums

    def in_choice(self) -> list[str]:
        """Who had a share in which node is the best: scored some nodes higher than others."""
        if len(set(self.weighted().values())) <= 1:
            return []
        return self.among(self.wanted.get("scores") or {})


def behind_fit(missing: frozenset[str], pod: PodInfo, cluster: SampleCluster) -> tuple[str, ...]:
    """DynamicResources, if it is missing and devices stand for a resource that the pod requests.

    NodeResourcesFit then leaves the resource to it on nodes that do not offer it themselves.
    """
    return (DEVICES,) if DEVICES in missing and stand_for_requests(pod, cluster) else ()


def stand_for_requests(pod: PodInfo, cluster: SampleCluster) -> bool:
    """Whether devices stand for a resource that the pod requests."""
    names: set[str] = set()
    for device_class in cluster.objects(KINDS["deviceClasses"]).list():
        assert isinstance(device_class, DeviceClass)
        names.add(device_class.spec.extended_resource_name or "")
        names.add(f"deviceclass.resource.kubernetes.io/{device_class.metadata.name}")
    return bool(names & set(pod.requests))
