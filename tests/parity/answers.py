"""Our answers in the words of the recorded ones."""

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
    found: Json = {"plugin": status.plugin} if blames else {}
    found["code"] = str(status.code)
    if status.reasons:
        found["reasons"] = list(status.reasons)
    return found


def pre_filter_answer(
    plugin: PreFilterPlugin, state: CycleState, pod: PodInfo, nodes: NodeView
) -> tuple[Json, bool]:
    """(what one plugin's PreFilter says, whether its Filter may be asked)."""
    try:
        answer = plugin.pre_filter(state, pod, nodes)
    except Exception as problem:  # noqa: BLE001 - a difference, whatever was recorded
        return {"code": ERROR, "reasons": [f"{type(problem).__name__}: {problem}"]}, False
    if isinstance(answer, PreFilterResult):
        found = status_as_json(None)
        if answer.node_names is not None:
            found["nodeNames"] = sorted(answer.node_names)
        return found, True
    return status_as_json(answer), is_success(answer)


def merged_answer(
    result: PreFilterResult, status: Status | None, narrowing: Iterable[str]
) -> Json | None:
    """What the framework makes of all PreFilters; None where all nodes are to be asked."""
    if is_success(status) and result.node_names is None:
        return None
    found = status_as_json(status, plugin=True)
    # Where one plugin rejects the pod for good, who narrowed the nodes before it is forgotten.
    if result.node_names is not None and narrowing:
        found["nodeNames"] = sorted(result.node_names)
        found["plugins"] = sorted(narrowing)
    return found


def rejections(outcome: FilterOutcome, *, plugin: bool) -> Mapping[str, Json]:
    """{node: {plugin, code, reasons}} of all rejected nodes."""
    statuses = outcome.node_to_status(outcome.nodes).for_each_explicit_node()
    return {name: status_as_json(status, plugin=plugin) for name, status in statuses}
