"""Which kinds of pod groups a live scheduler follows: those the API server offers, each API group
in its newest version only. One object told of in two versions would be two writers' work."""

from collections.abc import Callable

from bayplan.api.pod_groups import KINDS, api_group_of


def offered_kinds(is_offered: Callable[[str], bool]) -> tuple[str, ...]:
    """In the order of `KINDS`, which names the versions of an API group oldest first."""
    newest: dict[str, str] = {}
    for kind in KINDS:
        if is_offered(kind):
            newest[api_group_of(kind)] = kind
    return tuple(newest.values())
