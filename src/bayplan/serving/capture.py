"""Capture: the objects that a scheduler reads, as manifests from an API server.

`bayplan simulate` uses them to answer what-if questions about a real cluster: pods, nodes,
namespaces, the kinds that admission reads, and the kinds that the configured plugins look up. Each
kind is read at one moment; between two kinds the cluster may change. As in a scheduler, pods that
have ended are left out.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from bayplan.adapters.live.client import ApiClient
from bayplan.adapters.live.discovery import Discovery, Resource
from bayplan.adapters.live.errors import AccessDeniedError, read_answer
from bayplan.adapters.live.watching import FIELD_SELECTORS, PAGE_LENGTH
from bayplan.api.admission_objects import ADMISSION_KINDS
from bayplan.api.objects import NAMESPACE, NODE, POD, PRIORITY_CLASS

#: Kinds that are captured with any plugins.
ALWAYS = (NAMESPACE, PRIORITY_CLASS, *ADMISSION_KINDS, NODE, POD)
#: An annotation that repeats the whole object.
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

Content = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Capture:
    """The captured objects."""

    objects: list[Content]
    #: Kinds that the API server does not have.
    absent: list[str]
    #: Kinds that admission reads and that the user may not list, with the reason of the server.
    unreadable: dict[str, str]


async def capture(client: ApiClient, kinds: Iterable[str]) -> Capture:
    """All objects of ``kinds`` and of the kinds that are always captured. Raises ApiError."""
    ordered = sorted({*kinds, *ALWAYS}, key=_order)
    discovery = Discovery(client)
    await discovery.discover(ordered)
    captured = Capture([], [], {})
    for kind in ordered:
        resource = discovery.resource(kind)
        if resource is None:
            captured.absent.append(kind)
            continue
        try:
            captured.objects.extend(await _listed(client, resource))
        except AccessDeniedError as problem:
            if kind not in ADMISSION_KINDS:
                raise
            captured.unreadable[kind] = str(problem)
    return captured


def _order(kind: str) -> tuple[int, str]:
    """The order in the file: objects that others refer to first, pods last."""
    return (ALWAYS.index(kind) if kind in ALWAYS[:1] else len(ALWAYS) * (kind == POD), kind)


async def _listed(client: ApiClient, resource: Resource) -> list[Content]:
    query = {"limit": str(PAGE_LENGTH)}
    if resource.kind in FIELD_SELECTORS:
        query["fieldSelector"] = FIELD_SELECTORS[resource.kind]
    contents: list[Content] = []
    while True:
        body = await client.request("GET", f"{resource.path()}?{urlencode(query)}")
        page = read_answer(body, dict[str, Any], f"GET {resource.path()}")
        contents += (_cleaned(resource.kind, content) for content in page.get("items") or ())
        more = page["metadata"].get("continue")
        if not more:
            return contents
        query["continue"] = more


def _cleaned(kind: str, content: Content) -> Content:
    """A manifest as `kubectl get -o yaml` prints it, without managedFields."""
    version, _, name = kind.partition(" ")
    meta = {key: part for key, part in content["metadata"].items() if key != "managedFields"}
    if _LAST_APPLIED in (meta.get("annotations") or {}):
        meta["annotations"] = {k: v for k, v in meta["annotations"].items() if k != _LAST_APPLIED}
    return {"apiVersion": version, "kind": name, **content, "metadata": meta}
