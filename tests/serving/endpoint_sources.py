"""The sources of a replica's endpoints, for tests."""

import asyncio
import threading
from collections.abc import Callable, Iterator

from bayplan.config.feature_gates import default_gates
from bayplan.config.metric_table import metric_standard
from bayplan.history.past_state import StateRing
from bayplan.journal import BindingRecord, MemorySink
from bayplan.metrics import SchedulerMetrics
from bayplan.serving.decision_history import history_of
from bayplan.serving.dry_runs import DryRun
from bayplan.serving.endpoints import Endpoints, EndpointSources
from bayplan.serving.past_attempts import PastAttempts

BOUND = BindingRecord(at_seconds=1.0, pod="a/p", uid="u", node="n1", result="bound")


def sources(**ready: bool) -> EndpointSources:
    metrics, memory = SchedulerMetrics(), MemorySink()
    metrics.attempt("scheduled", "bayplan", 0.25)
    memory.write(BOUND)

    def check(is_well: bool) -> Callable[[], bool]:
        return lambda: is_well

    return EndpointSources(
        registry=metrics.registry,
        metric_standard=metric_standard(default_gates()),
        ready={name: check(is_well) for name, is_well in ready.items()},
        config={"kind": "KubeSchedulerConfiguration"},
        history=lambda pod: history_of(pod, memory, "2026-01-01T00:00:00Z"),
        attempts=PastAttempts(StateRing(10), memory, config={}, seed=0, absent=()),
        dry_run=lambda pod: DryRun(reason=f"{pod} does not wait for this scheduler"),
    )


def served(contents: EndpointSources, port: int) -> Iterator[str]:
    """Serve endpoints in a separate thread, for a fixture; yields HOST:PORT."""
    loop = asyncio.new_event_loop()
    endpoints = Endpoints(contents)
    loop.run_until_complete(endpoints.start("127.0.0.1", port))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield f"127.0.0.1:{port}"
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.run_until_complete(endpoints.stop())
    loop.close()
