"""Semantic versions (semver.org, 2.0.0): parse and compare. Build metadata after a plus sign is
ignored.

Upstream: github.com/blang/semver/v4, as the API server's CEL library uses it.
"""

import re
from dataclasses import dataclass
from functools import cached_property

_NUMBER = r"(?:0|[1-9][0-9]*)"
_IDENTIFIER = rf"(?:{_NUMBER}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_PATTERN = re.compile(
    rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})(?:-({_IDENTIFIER}(?:\.{_IDENTIFIER})*))?"
    r"(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)
_LENIENT = re.compile(r"v?0*([0-9]+)(?:\.0*([0-9]+))?(?:\.0*([0-9]+))?(.*)", re.DOTALL)


class SemverError(ValueError):
    """Text that is no semantic version."""


@dataclass(frozen=True)
class Semver:
    """One version."""

    major: int
    minor: int
    patch: int
    pre_release: str = ""

    @classmethod
    def parse(cls, text: str, *, normalize: bool = False) -> "Semver":
        """``normalize``: "v1.2" is 1.2.0, too. Raises SemverError."""
        match = _PATTERN.fullmatch(_normalized(text) if normalize else text)
        if match is None:
            raise SemverError(f"found {text!r}, wanted a version such as 1.2.3")
        major, minor, patch, pre_release = match.groups()
        return cls(int(major), int(minor), int(patch), pre_release or "")

    def compare(self, other: "Semver") -> int:
        """Below, at or above zero."""
        return (self._order > other._order) - (self._order < other._order)

    @cached_property
    def _order(self) -> tuple[object, ...]:
        """A release comes after its pre-releases; numbers come before words, fewer before more."""
        parts = tuple(
            (0, int(part), "") if part.isdecimal() else (1, 0, part)
            for part in self.pre_release.split(".")
            if part
        )
        return self.major, self.minor, self.patch, not parts, parts

    def __str__(self) -> str:
        numbers = f"{self.major}.{self.minor}.{self.patch}"
        return f"{numbers}-{self.pre_release}" if self.pre_release else numbers


def _normalized(text: str) -> str:
    match = _LENIENT.fullmatch(text)
    if match is None:
        return text
    major, minor, patch, suffix = match.groups()
    return f"{major}.{minor or 0}.{patch or 0}{suffix}"
