"""The questions of the page for which the engine is asked: what they accept, and their limits."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, cast

from bayplan.answers.document import Rows
from bayplan.history.timeline import State
from bayplan.problems import BadInputError
from bayplan.sim.input.what_if import NewNodes, Scaling, WhatIf, parse_scaling
from bayplan.state.pods import DEFAULT_NAMESPACE
from bayplan.ui import model_answers
from bayplan.ui.answers import PAGE
from bayplan.ui.computations import ComputationState
from bayplan.ui.subjects import NotReady, Query
from bayplan.ui.tables import NoSuchObject
from bayplan.whatif.comparison import WhatIfAnswer

#: The most nodes that a question names, new nodes, workloads that it scales, and their replicas.
_NODES_MAX: Final = 200
_NEW_NODES_MAX: Final = 2_000
_SCALINGS_MAX: Final = 20
_REPLICAS_MAX: Final = 20_000


# ---- what-if --------------------------------------------------------------------------------


def _changes(query: Query, state: State) -> WhatIf:
    """The changes that a question names, within the limits. Raises BadInputError, NoSuchObject."""
    template, count = query.text("template"), query.number("add", 0)
    if bool(template) != bool(count):
        raise BadInputError("add and template: wanted both: how many nodes, and the node to copy")
    if not 0 <= count <= _NEW_NODES_MAX:
        raise BadInputError(f"add: found {count}, wanted 1 to {_NEW_NODES_MAX}")
    if template:
        _check_node(template, state)
    scalings = _listed(query, "scale")
    if len(scalings) > _SCALINGS_MAX:
        raise BadInputError(f"scale: found {len(scalings)}, wanted at most {_SCALINGS_MAX}")
    changes = WhatIf(
        add=(NewNodes(template=template, count=count),) if template else (),
        scale=tuple(map(_scaling, scalings)),
        uncordon=_nodes(query, "uncordon", state),
        cordon=_nodes(query, "cordon", state),
        remove=_nodes(query, "remove", state),
        drain=_nodes(query, "drain", state),
    )
    if changes.is_empty:
        raise BadInputError("found no change, wanted one such as drain=NODE")
    return changes


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
    """NAMESPACE/KIND/NAME=REPLICAS, or without the namespace. Raises BadInputError."""
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
    changes = _changes(query, state)
    return model_answers.computed_what_if(
        query.subject, _moment(query, state), changes, force=force
    )


def _modelled(query: Query) -> State:
    """The state that a question is about. Raises NotReady, BadInputError."""
    state, subject = query.state, query.subject
    if not subject.has_model:
        raise BadInputError(f"{subject.name} has no objects that the engine could use")
    if subject.kind == "live" and query.text("at"):
        raise BadInputError("found at, wanted none: the engine answers about the present")
    return state


def _moment(query: Query, state: State) -> int:
    """What `Subject.model` gets, and by what answers are cached.

    The state of a running scheduler changes all the time. So a question about it has the number of
    a snapshot: questions with equal numbers are about one state, and a new number takes a new one.
    """
    return query.number("snapshot", 0) if query.subject.kind == "live" else state.change


def _what_if_page(query: Query) -> Any:
    return _what_if(query).part(query.number("offset", 0), query.number("limit", PAGE))


def _what_if_rows(query: Query) -> Rows:
    computed = _what_if(query)
    if computed.value is None:
        raise NotReady(computed.problem or "the answer is being computed")
    return cast(WhatIfAnswer, computed.value).rows()


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


def _rejections(query: Query) -> Any:
    state, node = _modelled(query), query.text("node")
    if node not in state.timeline.node_rows:
        raise NoSuchObject("node", node[:100])
    return model_answers.node_rejections(query.subject, state, _moment(query, state), node)


MODEL_QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "whatif": _what_if_page,
    "workloads": _workloads,
    "explanation": _explanation,
    "rejections": _rejections,
}
#: Tables as CSV: a heading and rows.
MODEL_TABLES: dict[str, Callable[[Any], tuple[Sequence[str], Iterable[Sequence[Any]]]]] = {
    "whatif": _what_if_rows,
}
