"""The further fields of an object that plugins declare in `fields`.

A path is written as it is declared, "Node.status.nodeInfo.kubeletVersion", or without its kind. A
field that no plugin declares is not decoded, so the object may have it or not: reading it raises
another error than a field that the object lacks.
"""

from collections.abc import Mapping
from typing import Any, final

from bayplan.problems import nearest


class UndeclaredField(KeyError):
    """A path that no plugin declares."""

    def __str__(self) -> str:
        return str(self.args[0])


class MissingField(KeyError):
    """A declared field that this object does not have."""

    def __str__(self) -> str:
        return str(self.args[0])


@final
class DeclaredFields(dict[str, Any]):
    """Path without its kind → value; None where the object lacks the field.

    ``fields[path]`` raises `UndeclaredField` or `MissingField`; ``fields.get(path)`` raises
    `UndeclaredField` and answers the default where the object lacks the field.
    """

    __slots__ = ("_kind", "_name")

    def __init__(self, kind: str, name: str, values: Mapping[str, Any]) -> None:
        """``kind``: "Node"; ``name``: the object's, for messages."""
        super().__init__(values)
        self._kind = kind
        self._name = name

    def __getitem__(self, path: str) -> Any:
        value = self._value(path)
        if value is None:
            get = f'{self._kind.lower()}.declared.get("{path}")'
            raise MissingField(f"{self._kind} {self._name} has no {path}; {get} answers None")
        return value

    def get(self, path: str, default: Any = None) -> Any:
        value = self._value(path)
        return default if value is None else value

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and super().get(self._own(path)) is not None

    def _own(self, path: str) -> str:
        return path.removeprefix(f"{self._kind}.")

    def _value(self, path: str) -> Any:
        own = self._own(path)
        try:
            return super().__getitem__(own)
        except KeyError:
            raise UndeclaredField(self._undeclared(own)) from None

    def _undeclared(self, path: str) -> str:
        near = nearest(path, list(self.keys()))
        if near is not None:
            return f'no plugin declares "{self._kind}.{path}"; did you mean "{self._kind}.{near}"?'
        return (
            f'no plugin declares "{self._kind}.{path}"; write '
            f'fields = ("{self._kind}.{path}",) in the plugin that reads it'
        )
