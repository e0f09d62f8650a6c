"""DefaultBinder: write the binding, and read the pod back if no answer came.

The API server refuses to bind a bound pod, or another pod of the same name (the binding carries the
uid). After a request without an answer the plugin reads the pod back: a pod bound to the chosen
node is a success. After a conflict the plugin reads the pod back, too, because a proxy may have
sent the request twice. Upstream: plugins/defaultbinder, which handles neither case. From 1.37 on, a
request that the server could not handle is repeated while the pod has no node (util.BindPod).
Otherwise the binding is an error, and the pod is tried again in its new state.
"""

from typing import final

from bayplan.api.objects import Pod
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import BindPlugin
from bayplan.framework.status import Code, Status
from bayplan.ports import ApiError, BindPort, ConflictError, OutcomeUnknownError
from bayplan.state.pods import PodInfo

#: Waits between attempts to read the pod back; after the last the binding counts as failed.
READ_BACK_DELAYS_SECONDS = (0.5, 1.0, 2.0, 4.0)

#: Waits before a binding is written again. Upstream: retry.DefaultBackoff.
RETRY_DELAYS_SECONDS = (0.01, 0.05, 0.25)
#: Upstream: util.Retriable; no server answered counts as 503.
_RETRIABLE = frozenset((500, 503))

_TOO_MANY_REQUESTS = 429
_SERVER_ERRORS = 500


@final
class DefaultBinder(BindPlugin):
    """Binds pods through the API server."""

    name = "DefaultBinder"
    binds_with_one_request = True

    def setup(self) -> None:
        retries = self.handle.behaviour.bindings_are_retried
        self._delays_seconds = RETRY_DELAYS_SECONDS if retries else ()

    async def bind(
        self, state: CycleState, pod: PodInfo, node_name: str, port: BindPort
    ) -> Status | None:
        for delay_seconds in self._delays_seconds:
            status, code = await _bound(pod, node_name, port)
            if status is None or code not in _RETRIABLE:
                return status
            await port.sleep(delay_seconds)
        return (await _bound(pod, node_name, port))[0]


async def _bound(pod: PodInfo, node_name: str, port: BindPort) -> tuple[Status | None, int]:
    """(why the pod is not bound or None, the code of the server's error or 0)."""
    try:
        await port.bind(pod, node_name)
    except ConflictError as problem:
        is_ours = await _read_back(pod, node_name, port, problem) is None
        return None if is_ours else Status.from_error(problem), problem.code
    except ApiError as problem:
        return Status.from_error(problem), problem.code
    except OutcomeUnknownError as problem:
        status = await _read_back(pod, node_name, port, problem)
        return status, problem.code
    return None, 0


async def _read_back(
    pod: PodInfo, node_name: str, port: BindPort, unknown: Exception
) -> Status | None:
    for delay_seconds in (*READ_BACK_DELAYS_SECONDS, None):
        try:
            current = await port.get_pod(pod.namespace, pod.name)
            return _verdict(pod, node_name, current)
        except ApiError as problem:
            if not _may_pass(problem):
                return Status.from_error(problem)
            unknown = problem
        except OutcomeUnknownError as problem:
            unknown = problem
        if delay_seconds is not None:
            await port.sleep(delay_seconds)
    return Status(Code.ERROR, (f"binding to {node_name}: outcome unknown: {unknown}",))


def _may_pass(problem: ApiError) -> bool:
    """Whether the error may be temporary: the server is busy or fails."""
    return problem.code == _TOO_MANY_REQUESTS or problem.code >= _SERVER_ERRORS


def _verdict(pod: PodInfo, node_name: str, current: Pod) -> Status | None:
    """Whether the pod in the API has this binding."""
    if current.metadata.uid != pod.uid:
        return _failed(node_name, f"another pod has its name, with uid {current.metadata.uid}")
    if not current.spec.node_name:
        return _failed(node_name, "no answer came and the pod is not bound")
    if current.spec.node_name != node_name:
        return _failed(node_name, f"the pod is bound to {current.spec.node_name}")
    return None


def _failed(node_name: str, why: str) -> Status:
    return Status(Code.ERROR, (f"binding to {node_name}: {why}",))
