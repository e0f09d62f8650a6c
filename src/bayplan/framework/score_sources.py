"""Score sources: how args name other score plugins, and how a reader gets their scores.

A reader is a score plugin whose args have fields of the types below. The framework finds the names
in the args, evaluates these sources first, and gives their scores to the reader, read-only
(`CycleState.scores`). A source knows nothing of its readers.

    class CheapestArgs(PluginArgs, frozen=True):
        score_from: Source | tuple[Source, ...]
        stage: Stage = "normalized"
        over: Over = "feasible"
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, Final, Literal, cast, final

from msgspec import Meta, Struct, inspect, structs

from bayplan.config.decoding import type_info
from bayplan.problems import joined
from bayplan.state.columns import NodeScores
from bayplan.state.nodes import NodeInfo, NodeView

_MARK: Final = "bayplan"
_SOURCE: Final = "source"
_OVER: Final = "over"

#: The name of a source: a score plugin, or an instance of one.
Source = Annotated[str, Meta(min_length=1, extra={_MARK: _SOURCE})]
#: The nodes that the sources are evaluated for: the feasible nodes, or all nodes.
Over = Annotated[Literal["feasible", "all"], Meta(extra={_MARK: _OVER})]
#: Whether scores are read after the source's normalization or before it.
Stage = Literal["normalized", "raw"]


class Reads(Struct, frozen=True):
    """The sources that a plugin's args name."""

    #: (path in the args, name of the source), in the order of the args.
    named: tuple[tuple[str, str], ...] = ()
    over_all: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The sources, each once."""
        return tuple(dict.fromkeys(name for _, name in self.named))


NOTHING: Final = Reads()


def reads_of(args: Any) -> Reads:
    """The sources that the fields of a struct name, including fields of inner structs."""
    if args is None:
        return NOTHING
    marked = list(_marked(args, type_info(cast("type[Any]", type(args))), ""))
    named = tuple((path, value) for mark, path, value in marked if mark == _SOURCE)
    return Reads(named, any(mark == _OVER and value == "all" for mark, _, value in marked))


@lru_cache(maxsize=256)
def _encoded_names(struct: type[Any]) -> Mapping[str, str]:
    """Name of a field → its name in a configuration."""
    return {field.name: field.encode_name for field in structs.fields(struct)}


def _marked(value: Any, kind: inspect.Type, path: str) -> Iterator[tuple[str, str, str]]:
    """(mark, path, value) of each part of ``value`` whose type carries a mark."""
    if isinstance(kind, inspect.Metadata):
        mark = cast("Mapping[str, str]", cast("Any", kind).extra or {}).get(_MARK)
        if mark is not None and isinstance(value, str):
            yield mark, path, value
        yield from _marked(value, kind.type, path)
    elif isinstance(kind, inspect.UnionType):
        for member in kind.types:
            if _may_be(value, member):
                yield from _marked(value, member, path)
    elif isinstance(kind, inspect.StructType):
        encoded = _encoded_names(kind.cls)
        for field in kind.fields:
            part = getattr(value, field.name)
            yield from _marked(part, field.type, joined(path, encoded[field.name]))
    elif isinstance(kind, inspect.ListType | inspect.VarTupleType):
        for index, item in enumerate(cast("Sequence[Any]", value)):
            yield from _marked(item, kind.item_type, f"{path}[{index}]")
    elif isinstance(kind, inspect.DictType):
        for name, item in cast("Mapping[str, Any]", value).items():
            yield from _marked(item, kind.value_type, joined(path, name))


def _may_be(value: Any, kind: inspect.Type) -> bool:
    """Whether a value can be this member of a union."""
    if isinstance(kind, inspect.Metadata):
        return _may_be(value, kind.type)
    if isinstance(kind, inspect.StructType):
        return isinstance(value, kind.cls)
    if isinstance(kind, inspect.ListType | inspect.VarTupleType):
        return isinstance(value, list | tuple)
    if isinstance(kind, inspect.DictType):
        return isinstance(value, Mapping)
    return isinstance(value, str)


# ---- scores for a reader -------------------------------------------------------------------

#: One source's scores, read-only.
StagedScores = Mapping[Stage, NodeScores]


class UndeclaredSource(Exception):
    """A plugin read scores that its args do not name."""

    def __init__(self, reader: str, name: str) -> None:
        super().__init__(
            f'scores of "{name}" are not read by {reader}: name it in a field of the type Source'
            if reader
            else f'scores of "{name}" can be read in Score and NormalizeScore only'
        )


@final
class SourceScores:
    """The scores of one reader's sources, valid while the reader is called."""

    __slots__ = ("_nodes", "_positions", "_reader", "_stages")

    def __init__(
        self, reader: str, nodes: NodeView | tuple[()], stages: Mapping[str, StagedScores]
    ) -> None:
        self._reader = reader
        self._nodes = nodes
        self._stages = stages
        self._positions: dict[str, int] = {}

    def of(self, name: str, stage: Stage) -> NodeScores:
        """int64[nodes], read-only. Raises UndeclaredSource."""
        try:
            return self._stages[name][stage]
        except KeyError:
            raise UndeclaredSource(self._reader, name) from None

    def at(self, name: str, stage: Stage, node: NodeInfo) -> int:
        """The source's score of one node."""
        scores = self.of(name, stage)
        if not self._positions and not isinstance(self._nodes, tuple):
            self._positions = {each: at for at, each in enumerate(self._nodes.names())}
        return scores.item(self._positions[node.name])


#: The value while no reader is called.
NO_SOURCES: Final = SourceScores("", (), {})
