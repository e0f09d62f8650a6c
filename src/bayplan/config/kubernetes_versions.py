"""The versions of Kubernetes whose scheduler Bayplan answers as.

A version is a minor version, and its newest recorded patch decides. 1.37 has two entries: 1.37.1
changed answers of 1.37.0. `gate_table` and `behaviour` say what differs between them.
"""

import re
from collections.abc import Iterable
from enum import StrEnum

from bayplan.problems import BadInputError, listed, shown


class KubernetesVersion(StrEnum):
    """In the order of their releases. The value is what a user writes."""

    V1_34 = "1.34"
    V1_35 = "1.35"
    V1_36 = "1.36"
    V1_37_0 = "1.37.0"
    V1_37 = "1.37"
    V1_38 = "1.38-preview"

    @property
    def position(self) -> int:
        """The place in the order of releases."""
        return _POSITIONS[self]

    @property
    def is_recorded(self) -> bool:
        """Whether the answers were compared with those of the released kube-scheduler. A preview
        has what merged pull requests say."""
        return self.position <= NEWEST.position


_POSITIONS = {version: place for place, version in enumerate(KubernetesVersion)}

#: The answers if nothing says which version a cluster runs.
NEWEST = KubernetesVersion.V1_37

#: Patch releases that answer as an entry of their own.
_PATCHES = {(1, 37, 0): KubernetesVersion.V1_37_0}
_RELEASE = re.compile(r"v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?(?:[-+].{0,100})?", re.ASCII)

VERSION_CHOICES = f"wanted {listed(tuple(KubernetesVersion))}, or a patch release such as 1.36.3"


def version_of_release(text: str) -> KubernetesVersion | None:
    """The version that answers as a release: "v1.35.4-gke.100" → 1.35; None for other releases."""
    if text in _POSITIONS:
        return KubernetesVersion(text)
    release = release_of(text)
    if release is None:
        return None
    if release in _PATCHES:
        return _PATCHES[release]
    minor = f"{release[0]}.{release[1]}"
    return KubernetesVersion(minor) if minor in _POSITIONS else None


def nearest_version(texts: Iterable[str]) -> tuple[KubernetesVersion, str] | None:
    """(version, release) for the releases that parts of a cluster report.

    The newest release decides: a scheduler is not older than the kubelets. A release before or
    after all versions takes the first or the newest one. None: no text is a release.
    """
    releases = {release: text for text in texts if (release := release_of(text)) is not None}
    if not releases:
        return None
    newest = max(releases)
    version = version_of_release(releases[newest])
    if version is None:
        oldest, *_ = KubernetesVersion
        is_old = newest < (release_of(oldest) or newest)
        version = oldest if is_old else NEWEST
    return version, releases[newest]


def release_of(text: str) -> tuple[int, int, int] | None:
    """(major, minor, patch); without a patch the newest one is meant. None: the text is no
    release, such as v0.0.0-master of a build that has no version."""
    match = _RELEASE.fullmatch(text.strip())
    if match is None:
        return None
    major, minor, patch = match.groups(default="9999")
    return (int(major), int(minor), int(patch)) if int(major) else None


def requested_version(text: str, option: str) -> KubernetesVersion | None:
    """The version that a user names; None for "". Raises BadInputError."""
    if not text:
        return None
    version = version_of_release(text)
    if version is None:
        raise BadInputError(f"{option}: found {shown(text)}, {VERSION_CHOICES}")
    return version
