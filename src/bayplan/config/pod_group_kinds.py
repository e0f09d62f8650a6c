"""`podGroups.kinds`: additional kinds of pod groups: group, version, kind and label."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from bayplan.api.pod_groups import (
    BUILT_IN_KINDS,
    UPSTREAM_GROUP,
    PodGroupKinds,
    api_group_of,
    labelled_kind,
)
from bayplan.api.selectors import is_label_key
from bayplan.config.schema import PodGroupKindSettings
from bayplan.problems import Problem, shown

_PATH: Final = "podGroups.kinds"
_DNS_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+")
_VERSION = re.compile(r"v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?")
_KIND = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")


def group_kinds(settings: Sequence[PodGroupKindSettings]) -> PodGroupKinds:
    """The built-in kinds and the configured ones."""
    return BUILT_IN_KINDS.with_kinds(labelled_kind(_name(row), row.label) for row in settings)


def kind_problems(settings: Sequence[PodGroupKindSettings]) -> Iterator[Problem]:
    """The errors of the configured kinds."""
    built_in = {api_group_of(kind): kind.partition(" ")[2] for kind in BUILT_IN_KINDS}
    written: dict[str, int] = {}
    for index, row in enumerate(settings):
        path = f"{_PATH}[{index}]"
        yield from _field_problems(path, row)
        first = written.setdefault(_name(row), index)
        if first != index:
            yield Problem(path, f"{shown(_name(row))} again", f"{_PATH}[{first}] is the same")
        kind = built_in.setdefault(row.group, row.kind)
        if kind != row.kind:
            expected = f"wanted {kind}: an API group has one kind of pod groups"
            yield Problem(f"{path}.kind", shown(row.kind), expected)


def _field_problems(path: str, row: PodGroupKindSettings) -> Iterator[Problem]:
    if row.group == UPSTREAM_GROUP:
        expected = "wanted another API group: pods name these groups in spec.schedulingGroup"
        yield Problem(f"{path}.group", shown(row.group), expected)
    elif not _DNS_SUBDOMAIN.fullmatch(row.group):
        yield Problem(f"{path}.group", shown(row.group), "wanted an API group such as example.com")
    if not _VERSION.fullmatch(row.version):
        yield Problem(f"{path}.version", shown(row.version), "wanted a version such as v1alpha1")
    if not _KIND.fullmatch(row.kind):
        yield Problem(f"{path}.kind", shown(row.kind), "wanted a kind such as PodGroup")
    if not is_label_key(row.label):
        expected = "wanted the label with which pods name a group, such as example.com/pod-group"
        yield Problem(f"{path}.label", shown(row.label), expected)


def _name(row: PodGroupKindSettings) -> str:
    return f"{row.group}/{row.version} {row.kind}"
