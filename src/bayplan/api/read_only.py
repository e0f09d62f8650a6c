"""Mappings that plugins read and may not change.

All readers share one object of the cluster, and signatures and cached results depend on its content
when it arrived. Some readers would see a change in place and others would not, so a change raises.
Reading costs the same as with a plain dict.
"""

from collections.abc import Mapping
from typing import Any, Final, NoReturn, TypeVar, final

K = TypeVar("K")
V = TypeVar("V")


READ_ONLY: Final = (
    "this mapping belongs to an object of the cluster and is read-only; change a copy, "
    "such as dict(pod.labels), and keep notes of an attempt in the CycleState"
)


class ReadOnlyError(TypeError):
    """Something tried to change a mapping of an object of the cluster."""

    def __init__(self) -> None:
        super().__init__(READ_ONLY)


def _refuse(*_: Any, **__: Any) -> NoReturn:
    raise ReadOnlyError


@final
class ReadOnlyDict(dict[K, V]):
    """A dict that cannot be changed after its creation."""

    __slots__ = ()

    __setitem__ = __delitem__ = __ior__ = _refuse  # pyright: ignore[reportAssignmentType]
    update = setdefault = pop = popitem = clear = _refuse  # pyright: ignore[reportAssignmentType]

    def __reduce__(self) -> tuple[Any, ...]:
        return ReadOnlyDict, (dict(self),)


EMPTY: Final[Mapping[str, str]] = ReadOnlyDict()
