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

import msgspec

from bayplan.adapters.live.client import ApiClient
from bayplan.adapters.live.discovery import Discovery, Resource
from bayplan.adapters.live.errors import (
    AccessDeniedError,
    UnreadableAnswerError,
    read_answer,
)
from bayplan.adapters.live.watching import FIELD_SELECTORS, PAGE_LENGTH, ListMeta, PageLimits
from bayplan.api.admission_objects import ADMISSION_KINDS
from bayplan.api.objects import NAMESPACE, NODE, POD, PRIORITY_CLASS

#: Kinds that are captured with any plugins.
ALWAYS = (NAMESPACE, PRIORITY_CLASS, *ADMISSION_KINDS, NODE, POD)
#: An annotation that repeats the whole object.
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

Content = dict[str, Any]


class _NamedMetadata(msgspec.Struct):
    name: str
    annotations: dict[str, str] | None = None


class _NamedObject(msgspec.Struct):
    """What each object must have here."""

    metadata: _NamedMetadata


class _Page(msgspec.Struct):
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: list[Content] | None = None


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
    request = f"GET {resource.path()}"
    limits = PageLimits(request)
    while True:
        body = await client.request("GET", f"{resource.path()}?{urlencode(query)}")
        page = read_answer(body, _Page, request)
        limits.add(len(body), page.metadata.continue_ or "")
        limits.end_page(len(page.items or ()))
        for number, content in enumerate(page.items or ()):
            try:
                msgspec.convert(content, _NamedObject)
            except msgspec.ValidationError as problem:
                raise UnreadableAnswerError(f"{request}: items[{number}]: {problem}") from None
            contents.append(_cleaned(resource.kind, content))
        if not page.metadata.continue_:
            return contents
        query["continue"] = page.metadata.continue_


def _cleaned(kind: str, content: Content) -> Content:
    """A manifest as `kubectl get -o yaml` prints it, without managedFields."""
    version, _, name = kind.partition(" ")
    meta = {key: part for key, part in content["metadata"].items() if key != "managedFields"}
    if _LAST_APPLIED in (meta.get("annotations") or {}):
        meta["annotations"] = {k: v for k, v in meta["annotations"].items() if k != _LAST_APPLIED}
    return {"apiVersion": version, "kind": name, **content, "metadata": meta}
