"""Amounts and lists of names as a reader wants them."""

from collections.abc import Sequence

from bayplan.api.pod_requests import CPU, EPHEMERAL_STORAGE, MEMORY

_MILLI = 1000
_UNITS = (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10))


def amount_text(resource: str, amount: int) -> str:
    """``amount``: millicores of cpu, bytes, or a count: 500m, 2, 1536Mi."""
    if resource == CPU:
        return f"{amount}m" if amount % _MILLI else str(amount // _MILLI)
    if resource in (MEMORY, EPHEMERAL_STORAGE) or resource.startswith("hugepages-"):
        for suffix, size in _UNITS:
            if amount and not amount % size:
                return f"{amount // size}{suffix}"
    return str(amount)


def short_text(resource: str, amount: int) -> str:
    """The same for a reader: bytes are rounded up to a unit of which there are at least ten."""
    exact = amount_text(resource, amount)
    if resource == CPU or len(exact) <= 6:
        return exact
    if resource in (MEMORY, EPHEMERAL_STORAGE):
        for suffix, size in _UNITS:
            if amount >= 10 * size:
                return f"{-(-amount // size)}{suffix}"
    return exact


def rounded_down(resource: str, amount: int) -> int:
    """An amount that a person would write: whole Mi of bytes where there are some."""
    mebibyte = 2**20
    if resource in (MEMORY, EPHEMERAL_STORAGE) and amount >= mebibyte:
        return amount // mebibyte * mebibyte
    return amount


#: Names that a list shows.
_NAMES_MAX = 5


def counted(count: int, noun: str) -> str:
    """ "1 node", "2 nodes"."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def listed_names(names: Sequence[str]) -> str:
    """The first names, and how many follow."""
    shown = ", ".join(names[:_NAMES_MAX])
    further = len(names) - _NAMES_MAX
    return shown if further <= 0 else f"{shown} and {further:,} more"
