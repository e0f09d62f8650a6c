"""The questions of the page that the engine answers: what they accept, and their limits."""

import zlib
from base64 import b64decode
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final, cast

from bayplan.answers.document import Answer, Rows
from bayplan.history.timeline import State
from bayplan.objects.keys import DEFAULT_NAMESPACE
from bayplan.problems import BadInputError
from bayplan.sim.input.errors import InputErrors
from bayplan.sim.input.sources import ObjectText, Part, read_sources
from bayplan.sim.input.what_if import NewNodes, Scaling, WhatIf, parse_scaling
from bayplan.ui import model_answers, object_answers
from bayplan.ui.answers import PAGE
from bayplan.ui.computations import ComputationState
from bayplan.ui.subjects import NotReady, Query
from bayplan.ui.tables import NoSuchObject
from bayplan.whatif.all_pending import PendingPods

#: The most nodes that a question names, new nodes, workloads that it scales, and their replicas.
_NODES_MAX: Final = 200
_NEW_NODES_MAX: Final = 2_000
_SCALINGS_MAX: Final = 20
_REPLICAS_MAX: Final = 20_000
#: The longest text that is applied.
_TEXT_BYTES_MAX: Final = 1 << 20


# ---- what-if --------------------------------------------------------------------------------


def _changes(query: Query, state: State) -> WhatIf:
    """The changes that a question names, within the limits. Raises BadInputError, NoSuchObject."""
    scalings = _listed(query, "scale")
    if len(scalings) > _SCALINGS_MAX:
        raise BadInputError(f"scale: found {len(scalings)}, wanted at most {_SCALINGS_MAX}")
    changes = WhatIf(
        add=_new_nodes(query, state),
        scale=tuple(map(_scaling, scalings)),
        apply=_objects(query),
        uncordon=_nodes(query, "uncordon", state),
        cordon=_nodes(query, "cordon", state),
        remove=_nodes(query, "remove", state),
        drain=_nodes(query, "drain", state),
    )
    if changes.is_empty == (not query.text("config")):
        expected = "one of them" if query.text("config") else "one such as drain=NODE"
        actual = "a configuration and other changes" if query.text("config") else "no change"
        raise BadInputError(f"found {actual}, wanted {expected}")
    return changes


def _new_nodes(query: Query, state: State) -> tuple[NewNodes, ...]:
    """The copies of a node that NODE=COUNT asks for."""
    added: list[NewNodes] = []
    for part in _listed(query, "add"):
        name, _, count = part.rpartition("=")
        if not name or not count.isdecimal() or not 1 <= int(count) <= _NEW_NODES_MAX:
            raise BadInputError(
                f"add: found {part[:100]!r}, wanted NODE=COUNT, at most {_NEW_NODES_MAX} nodes"
            )
        _check_node(name, state)
        added.append(NewNodes(template=name, count=int(count)))
    total = sum(one.count for one in added)
    if total > _NEW_NODES_MAX:
        raise BadInputError(f"add: found {total} nodes, wanted at most {_NEW_NODES_MAX}")
    return tuple(added)


def _objects(query: Query) -> tuple[dict[str, Any], ...]:
    """The objects of the text that is applied. It is read as the command reads a file."""
    text = packed_text(query.text("apply"), "apply")
    if not text:
        return ()
    errors = InputErrors()
    parts = read_sources([ObjectText(text, "the text")], errors)
    errors.raise_if_any()
    return tuple(part.value for part in parts if isinstance(part, Part))


def packed_text(packed: str, name: str) -> bytes:
    """A text of the address, which is compressed (raw deflate) in the alphabet of base64 for
    addresses.

    Raises BadInputError.
    """
    try:
        content = b64decode(packed + "=" * (-len(packed) % 4), altchars="-_", validate=True)
        unpacking = zlib.decompressobj(-zlib.MAX_WBITS)
        text = unpacking.decompress(content, _TEXT_BYTES_MAX + 1)
    except (ValueError, zlib.error):
        raise BadInputError(f"{name}: wanted a text as raw deflate in base64") from None
    if len(text) > _TEXT_BYTES_MAX:
        raise BadInputError(f"{name}: found a longer text, wanted at most {_TEXT_BYTES_MAX} bytes")
    if packed and not unpacking.eof:
        raise BadInputError(f"{name}: the text is cut off")
    return text


def _listed(query: Query, name: str) -> list[str]:
    return [part for part in query.text(name).split(",") if part]


def _nodes(query: Query, verb: str, state: State) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(_listed(query, verb)))
    if len(names) > _NODES_MAX:
        raise BadInputError(f"{verb}: found {len(names)} nodes, wanted at most {_NODES_MAX}")
    for name in names:
        _check_node(name, state)
    return names


def _check_node(name: str, state: State) -> None:
    row = state.timeline.node_rows.get(name)
    if row is None or state.node_version[row] < 0:
        raise NoSuchObject("node", name[:100])


def _scaling(text: str) -> Scaling:
    """The workload and replicas of NAMESPACE/KIND/NAME=REPLICAS, where the namespace may be
    missing. Raises BadInputError."""
    has_namespace = text.partition("=")[0].count("/") > 1
    namespace, _, own = text.partition("/") if has_namespace else (DEFAULT_NAMESPACE, "", text)
    try:
        scaling = parse_scaling(own, namespace)
    except BadInputError as problem:
        raise BadInputError(str(problem).removeprefix("--")) from None
    if scaling.replicas > _REPLICAS_MAX:
        raise BadInputError(f"scale: found {scaling.replicas}, wanted at most {_REPLICAS_MAX}")
    return scaling


def _what_if(query: Query) -> ComputationState:
    state = _modelled(query)
    force = query.number("force", 0) == 1
    changes, config = _changes(query, state), packed_text(query.text("config"), "config")
    moment = _moment(query, state)
    if config:
        return model_answers.computed_configuration(query.subject, moment, config)
    return model_answers.computed_what_if(query.subject, moment, changes, force=force)


def _modelled(query: Query) -> State:
    """The state that a question is about. Raises NotReady, BadInputError."""
    state, subject = query.state, query.subject
    if not subject.has_model:
        raise BadInputError(f"{subject.name} has no objects that the engine could use")
    if subject.kind == "live" and query.text("at"):
        raise BadInputError("found at, wanted none: the engine answers about the present")
    return state


def _moment(query: Query, state: State) -> int:
    """The argument of `Subject.model`, which is also the key of cached answers.

    The state of a running scheduler changes all the time. So a question about it has the number of
    a snapshot. Questions with equal numbers are about one state, and a new number takes a new
    snapshot.
    """
    return query.number("snapshot", 0) if query.subject.kind == "live" else state.change


def _pending(query: Query) -> ComputationState:
    return model_answers.pending_pods(query.subject, _moment(query, _modelled(query)))


def _pending_page(query: Query) -> Any:
    """The groups from an offset on. With ``workload``, the page that has the workload."""
    computed, workload = _pending(query), query.text("workload")
    offset, limit = query.number("offset", 0), query.number("limit", PAGE)
    if workload and limit > 0 and computed.value is not None:
        groups = cast(PendingPods, computed.value).groups
        place = next((n for n, group in enumerate(groups) if group.workload == workload), 0)
        offset = place - place % limit
    return computed.part(offset, limit)


def _fixes(query: Query) -> Any:
    state = _modelled(query)
    return model_answers.cause_fixes(query.subject, state, _moment(query, state))


def _page(ask: Callable[[Query], ComputationState], query: Query) -> Any:
    """A part of the list of an answer."""
    return ask(query).part(query.number("offset", 0), query.number("limit", PAGE))


def _rows(ask: Callable[[Query], ComputationState], query: Query) -> Rows:
    """The whole list of an answer. Raises NotReady."""
    computed = ask(query)
    if computed.value is None:
        raise NotReady(computed.problem or "the answer is being computed")
    return cast(Answer, computed.value).rows()


def _workloads(query: Query) -> Any:
    state, search = _modelled(query), query.text("search")
    limit = query.number("limit", PAGE)
    return model_answers.workload_page(query.subject, _moment(query, state), search, limit)


# ---- pods and nodes -------------------------------------------------------------------------


def _explanation(query: Query) -> Any:
    state, pod = _modelled(query), query.text("pod")
    if pod not in state.timeline.rows_by_name:
        raise NoSuchObject("pod", pod[:100])
    return model_answers.explanation_answer(query.subject, _moment(query, state), pod)


def _objects_by_name(query: Query) -> Any:
    part = query.number("offset", 0), query.number("limit", PAGE)
    moment = _moment(query, _modelled(query))
    return object_answers.object_page(query.subject, moment, query.text("search"), part)


def _object(query: Query) -> Any:
    kind, name = query.text("kind"), query.text("name")
    moment = _moment(query, _modelled(query))
    return object_answers.object_text(query.subject, moment, kind, name)


def _rejections(query: Query) -> Any:
    state, node = _modelled(query), query.text("node")
    if node not in state.timeline.node_rows:
        raise NoSuchObject("node", node[:100])
    return model_answers.node_rejections(query.subject, state, _moment(query, state), node)


MODEL_QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "whatif": partial(_page, _what_if),
    "pending": _pending_page,
    "fixes": _fixes,
    "workloads": _workloads,
    "explanation": _explanation,
    "objects": _objects_by_name,
    "object": _object,
    "rejections": _rejections,
}
#: Tables as CSV: a heading and rows.
MODEL_TABLES: dict[str, Callable[[Any], tuple[Sequence[str], Iterable[Sequence[Any]]]]] = {
    "whatif": partial(_rows, _what_if),
    "pending": partial(_rows, _pending),
}
