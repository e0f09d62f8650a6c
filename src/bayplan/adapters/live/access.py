"""The rights that a scheduler needs, and which of them the API server denies.

One list makes the shipped RBAC rules and the check at start, which sends one
SelfSubjectAccessReview per verb and resource. Missing rights are reported by verb and resource
before the scheduler starts.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from bayplan.adapters.live.client import ApiClient, all_results
from bayplan.adapters.live.discovery import Resource
from bayplan.adapters.live.errors import read_answer

_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """One verb on one resource ("pods", "pods/binding") in all namespaces."""

    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        """In the API server's words: `list resource "nodes" in API group ""`."""
        return f'{self.verb} resource "{self.resource}" in API group "{self.group}"'


#: Rights to write, and to read pods back.
WRITING = (
    Right("", "pods", "get"),
    Right("", "pods", "delete"),
    Right("", "pods/binding", "create"),
    Right("", "pods/status", "patch"),
    Right("events.k8s.io", "events", "create"),
    Right("events.k8s.io", "events", "patch"),
)


def rights_to_follow(resources: Iterable[Resource]) -> list[Right]:
    """Rights to list and watch these kinds."""
    return [
        Right(resource.group, resource.plural, verb)
        for resource in resources
        for verb in ("list", "watch")
    ]


def group_statuses(resources: Iterable[Resource]) -> list[Right]:
    """Rights to write the status of pod groups of these kinds."""
    rights = (Right(each.group, f"{each.plural}/status", "patch") for each in resources)
    return list(dict.fromkeys(rights))


async def missing_rights(client: ApiClient, required: Iterable[Right]) -> list[Right]:
    """The rights that this user does not have, sorted. Raises ApiError."""
    rights = sorted(set(required))
    answers = await all_results(_is_allowed(client, right) for right in rights)
    return [right for right, allowed in zip(rights, answers, strict=True) if not allowed]


def denial(missing: Iterable[Right]) -> str:
    """A sentence that names all missing rights and the remedy."""
    named = "; ".join(map(str, missing))
    return (
        f"RBAC: this user cannot {named}; grant it with a ClusterRole "
        f"(`bayplan run` needs them in all namespaces)"
    )


class _Verdict(msgspec.Struct):
    allowed: bool = False


class _Review(msgspec.Struct):
    status: _Verdict = msgspec.field(default_factory=_Verdict)


async def _is_allowed(client: ApiClient, right: Right) -> bool:
    resource, _, subresource = right.resource.partition("/")
    attributes = {
        "verb": right.verb,
        "group": right.group,
        "resource": resource,
        "subresource": subresource,
    }
    content = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    body = await client.request("POST", _REVIEWS, content)
    return read_answer(body, _Review, f"POST {_REVIEWS}").status.allowed
