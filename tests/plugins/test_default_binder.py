"""DefaultBinder: the binding, and the handling of a missing answer."""

from collections.abc import Coroutine
from typing import Any

import pytest

from bayplan.api.objects import POD, Pod, decode
from bayplan.config.kubernetes_versions import NEWEST, KubernetesVersion
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.status import Code, Status
from bayplan.plugins.default_binder import (
    READ_BACK_DELAYS_SECONDS,
    RETRY_DELAYS_SECONDS,
    DefaultBinder,
)
from bayplan.ports import (
    ApiError,
    ConflictError,
    NotFoundError,
    OutcomeUnknownError,
)
from bayplan.testing import pod
from bayplan.testing.clusters import SampleCluster, handle_for
from tests.kit.ports import RecordingPort

UNKNOWN = OutcomeUnknownError("connection reset")
BUSY = ApiError(429, "TooManyRequests", "try again")


def done(coroutine: Coroutine[Any, Any, Status | None]) -> Status | None:
    """Run a coroutine that waits for nothing outside to its end."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("it waits")


def bind(port: RecordingPort, version: KubernetesVersion = NEWEST) -> Status | None:
    handle = handle_for(SampleCluster(kubernetes=version), DefaultBinder, "DefaultBinder")
    return done(DefaultBinder(None, handle).bind(CycleState(), pod("p"), "n1", port))


def stored(node_name: str | None = None, uid: str = "uid-default/p") -> Pod:
    """The pod in the API."""
    metadata = {"name": "p", "namespace": "default", "uid": uid}
    pod = decode(POD, {"metadata": metadata, "spec": {"nodeName": node_name}})
    assert isinstance(pod, Pod)
    return pod


def test_a_written_binding_is_a_success() -> None:
    port = RecordingPort()
    assert bind(port) is None
    assert port.bound == [("default/p", "n1")]


@pytest.mark.parametrize(
    ("problem", "reads"),
    [
        pytest.param(NotFoundError("no such pod"), [], id="the pod does not exist"),
        pytest.param(ConflictError("bound to n2"), [stored("n2")], id="bound to another node"),
        pytest.param(ConflictError("it has gates"), [stored()], id="binding is forbidden"),
        pytest.param(ConflictError("other uid"), [NotFoundError("gone")], id="deleted meanwhile"),
    ],
)
def test_a_refused_binding_is_an_error_with_the_servers_message(
    problem: ApiError, reads: list[Pod | Exception]
) -> None:
    status = bind(RecordingPort(problem, reads))
    assert status is not None
    assert (status.code, status.reasons, status.error) == (Code.ERROR, (str(problem),), problem)


def test_a_conflict_with_the_schedulers_own_binding_is_a_success() -> None:
    """The request was sent twice by the network, and the second answer arrived."""
    assert bind(RecordingPort(ConflictError("already assigned to node n1"), [stored("n1")])) is None


def test_without_an_answer_a_pod_on_its_node_is_bound() -> None:
    assert bind(RecordingPort(UNKNOWN, [stored("n1")])) is None


@pytest.mark.parametrize(
    ("read", "message"),
    [
        pytest.param(stored(), "no answer came and the pod is not bound", id="not bound"),
        pytest.param(stored("n2"), "the pod is bound to n2", id="bound elsewhere"),
        pytest.param(
            stored("n1", "uid-q"), "another pod has its name, with uid uid-q", id="created again"
        ),
        pytest.param(NotFoundError("no such pod"), "no such pod", id="deleted"),
    ],
)
def test_without_an_answer_anything_else_is_an_error(read: Pod | Exception, message: str) -> None:
    port = RecordingPort(UNKNOWN, [read])
    status = bind(port)
    assert status is not None
    assert status.code is Code.ERROR
    assert status.message.endswith(message)


@pytest.mark.parametrize("trouble", [UNKNOWN, BUSY, ApiError(503, "Unavailable", "starting")])
def test_reading_the_pod_is_tried_again_with_growing_delay(trouble: Exception) -> None:
    port = RecordingPort(UNKNOWN, [trouble, trouble, stored("n1")])
    assert bind(port) is None
    assert port.slept_seconds == list(READ_BACK_DELAYS_SECONDS[:2])
    assert port.slept_seconds == sorted(port.slept_seconds)


def test_reading_the_pod_ends_after_some_tries() -> None:
    port = RecordingPort(UNKNOWN, [UNKNOWN] * (len(READ_BACK_DELAYS_SECONDS) + 1))
    status = bind(port)
    assert status is not None
    assert status.code is Code.ERROR
    assert status.message == "binding to n1: outcome unknown: connection reset"
    assert port.slept_seconds == list(READ_BACK_DELAYS_SECONDS)


@pytest.mark.parametrize("reads", [[stored()], [UNKNOWN, stored("n2")], [UNKNOWN] * 9])
def test_a_binding_is_never_written_twice(reads: list[Pod | Exception]) -> None:
    port = RecordingPort(UNKNOWN, reads)
    bind(port)
    assert len(port.bound) == 1


# ---- errors of the server --------------------------------------------------------------------

TROUBLE = (
    ApiError(503, "ServiceUnavailable", "no server answered"),
    OutcomeUnknownError("etcdserver: request timed out", 500),
)


@pytest.mark.parametrize("trouble", TROUBLE)
def test_a_binding_that_the_server_cannot_handle_is_written_again(trouble: Exception) -> None:
    port = RecordingPort(trouble, [stored(), stored()], failing_binds=2)
    assert bind(port) is None
    assert (len(port.bound), port.slept_seconds) == (3, list(RETRY_DELAYS_SECONDS[:2]))


@pytest.mark.parametrize("trouble", TROUBLE)
def test_a_binding_is_written_four_times_at_most(trouble: Exception) -> None:
    port = RecordingPort(trouble, [stored()] * 4)
    status = bind(port)
    assert status is not None and status.code is Code.ERROR
    assert (len(port.bound), port.slept_seconds) == (4, list(RETRY_DELAYS_SECONDS))


@pytest.mark.parametrize("trouble", TROUBLE)
def test_before_1_37_a_binding_is_written_once(trouble: Exception) -> None:
    port = RecordingPort(trouble, [stored()])
    assert bind(port, KubernetesVersion.V1_36) is not None
    assert len(port.bound) == 1


def test_a_binding_that_was_written_before_the_error_is_not_written_again() -> None:
    port = RecordingPort(TROUBLE[1], [stored("n1")])
    assert bind(port) is None
    assert len(port.bound) == 1
