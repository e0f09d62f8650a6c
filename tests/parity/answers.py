"""Bayplan's answers in the format of the recorded ones."""

from collections.abc import Iterable, Mapping
from typing import Any

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.plugin import PreFilterPlugin
from bayplan.framework.status import Code, Status, is_success
from bayplan.framework.types import PreFilterResult
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo

Json = dict[str, Any]

ERROR = str(Code.ERROR)


def status_as_json(status: Status | None, *, plugin: bool = False) -> Json:
    """{plugin, code, reasons} of a status, without empty fields. A success has no plugin."""
    if status is None:
        return {"code": str(Code.SUCCESS)}
    blames = plugin and status.plugin and status.code is not Code.SUCCESS
    entry: Json = {"plugin": status.plugin} if blames else {}
    entry["code"] = str(status.code)
    if status.reasons:
        entry["reasons"] = list(status.reasons)
    return entry


def pre_filter_answer(
    plugin: PreFilterPlugin, state: CycleState, pod: PodInfo, nodes: NodeView
) -> tuple[Json, bool]:
    """(answer of one plugin's PreFilter, whether its Filter may be called)."""
    try:
        answer = plugin.pre_filter(state, pod, nodes)
    except Exception as problem:  # noqa: BLE001 - a difference, whatever was recorded
        return {"code": ERROR, "reasons": [f"{type(problem).__name__}: {problem}"]}, False
    if isinstance(answer, PreFilterResult):
        entry = status_as_json(None)
        if answer.node_names is not None:
            entry["nodeNames"] = sorted(answer.node_names)
        return entry, True
    return status_as_json(answer), is_success(answer)


def merged_answer(
    result: PreFilterResult, status: Status | None, narrowing: Iterable[str]
) -> Json | None:
    """The framework's result of all PreFilters; None if every node goes through Filter."""
    if is_success(status) and result.node_names is None:
        return None
    entry = status_as_json(status, plugin=True)
    # If a plugin rejects the pod for good, the plugins that narrowed the nodes are not listed.
    if result.node_names is not None and narrowing:
        entry["nodeNames"] = sorted(result.node_names)
        entry["plugins"] = sorted(narrowing)
    return entry


def rejections(outcome: FilterOutcome, *, plugin: bool) -> Mapping[str, Json]:
    """{node: {plugin, code, reasons}} of all rejected nodes."""
    statuses = outcome.node_to_status(outcome.nodes).for_each_explicit_node()
    return {name: status_as_json(status, plugin=plugin) for name, status in statuses}
