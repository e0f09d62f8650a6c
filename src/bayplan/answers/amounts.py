"""Amounts and counts for a reader, in the notation of kubectl."""

from bayplan.api.pod_requests import CPU, EPHEMERAL_STORAGE, MEMORY

_MILLI = 1000
_UNITS = (("Ei", 2**60), ("Pi", 2**50), ("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10))
#: A longer amount is rounded for a reader.
_LENGTH_MAX = 6
_CPU_LENGTH_MAX = 5


def amount_text(resource: str, amount: int) -> str:
    """``amount``: millicores of cpu, bytes, or a count: 500m, 2, 1536Mi. Exact."""
    if resource == CPU:
        return f"{amount}m" if amount % _MILLI else str(amount // _MILLI)
    if _is_bytes(resource):
        for suffix, size in _UNITS:
            if amount and not amount % size:
                return f"{amount // size}{suffix}"
    return str(amount)


def short_text(resource: str, amount: int) -> str:
    """The same for a reader: a long amount is rounded up, with one digit after the point below a
    hundred: 15.3Gi. Bytes have a unit of which there are at least ten. From ten cores on, cpu is in
    cores, with two digits below a hundred, so that amounts that differ look different: 31.38,
    1234.6."""
    exact = amount_text(resource, amount)
    if len(exact) <= (_CPU_LENGTH_MAX if resource == CPU else _LENGTH_MAX):
        return exact
    if resource == CPU:
        return _rounded_up(amount, _MILLI, digits=2 if amount < 100 * _MILLI else 1)
    if _is_bytes(resource):
        for suffix, size in _UNITS:
            if amount >= 10 * size:
                return f"{_rounded_up(amount, size, digits=int(amount < 100 * size))}{suffix}"
        return exact
    return f"{amount:,}"


def _rounded_up(amount: int, size: int, *, digits: int) -> str:
    """``digits``: how many there are after the point at most."""
    scale = 10**digits
    whole, rest = divmod(-(-amount * scale // size), scale)
    return f"{whole}.{rest:0{digits}}".rstrip("0") if rest else str(whole)


def _is_bytes(resource: str) -> bool:
    return resource in (MEMORY, EPHEMERAL_STORAGE) or resource.startswith("hugepages-")


def rounded_down(resource: str, amount: int) -> int:
    """An amount that a person would write: whole Mi of bytes where there are some."""
    mebibyte = 2**20
    if resource in (MEMORY, EPHEMERAL_STORAGE) and amount >= mebibyte:
        return amount // mebibyte * mebibyte
    return amount


def share_text(requested: int, allocatable: int) -> str:
    """ "34%"; "–": nothing is allocatable. More than 100 % is possible."""
    return f"{requested / allocatable:.0%}" if allocatable else NONE


#: Stands for a number that does not exist.
NONE = "–"


def counted(count: int, noun: str) -> str:
    """ "1 node", "2 nodes"."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def pod_count(count: int) -> str:
    """ "1 pod", "2 pods"."""
    return counted(count, "pod")
