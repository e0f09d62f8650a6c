"""Capture: the objects that a scheduler reads, as manifests from an API server.

`bayplan simulate` uses them to answer what-if questions about a real cluster: pods, nodes,
namespaces, the kinds that admission reads, and the kinds that the configured plugins look up. Each
kind is read at one moment; between two kinds the cluster may change. As in a scheduler, pods that
have ended are left out.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from bayplan.adapters.live.client import ApiClient, all_results
from bayplan.adapters.live.server_version import reported_by_server
from bayplan.api.admission_objects import ADMISSION_KINDS
from bayplan.api.objects import NAMESPACE, POD
from bayplan.model.cluster_kinds import offered
from bayplan.model.live_reading import ClusterLists
from bayplan.objects.keys import Content, without_last_applied


@dataclass(frozen=True, slots=True)
class Capture:
    """The captured objects."""

    objects: list[Content]
    #: Kinds that the API server does not have.
    absent: list[str]
    #: Kinds that the user may not list, with the reason of the server.
    unreadable: dict[str, str]
    #: What the API server reports as its version; "": nothing.
    release: str = ""

    def documents(self, objects: list[Content] | None = None) -> list[Content]:
        """The objects, or others in their place, with the version that the cluster runs."""
        contents = self.objects if objects is None else objects
        return [_scenario_of(self.release), *contents] if self.release else contents


async def capture(client: ApiClient, kinds: Iterable[str]) -> Capture:
    """All objects of ``kinds`` and of the kinds that are always captured. Raises ApiError if nodes
    or pods cannot be listed."""
    read = await offered((*kinds, *ADMISSION_KINDS), client)
    ordered = sorted(read.kinds, key=_order)
    lists = ClusterLists(client)
    contents = await all_results(lists.contents(read.resources[kind]) for kind in ordered)
    objects = [
        _cleaned(k, one) for k, of_kind in zip(ordered, contents, strict=True) for one in of_kind
    ]
    release = "".join((await reported_by_server(client)).releases)
    return Capture(objects, sorted(read.absent), lists.unreadable, release)


def _scenario_of(release: str) -> Content:
    """The document that says which version the captured cluster runs."""
    return {
        "apiVersion": "bayplan.dev/v1alpha1",
        "kind": "Scenario",
        "spec": {"kubernetesVersion": release},
    }


def _order(kind: str) -> tuple[int, str]:
    """The order in the file: objects that others refer to first, pods last."""
    return ((kind == POD) - (kind == NAMESPACE), kind)


def _cleaned(kind: str, content: Content) -> Content:
    """A manifest as `kubectl get -o yaml` prints it, without managedFields."""
    version, _, name = kind.partition(" ")
    meta = {key: part for key, part in content["metadata"].items() if key != "managedFields"}
    cleaned = {**content, "metadata": without_last_applied(meta)}
    return {"apiVersion": version, "kind": name, **cleaned}
