"""`bayplan headroom --serve`: the counts as metrics, counted again from time to time."""

import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import final

from prometheus_client import CollectorRegistry, Counter, Gauge, start_http_server

from bayplan.cli.cluster_source import UnreadableClusterError
from bayplan.cli.streams import fail, remark
from bayplan.clock import RealClock
from bayplan.problems import BadInputError
from bayplan.whatif.headroom import Headroom


@final
class HeadroomMetrics:
    """The metrics of one cluster and its shapes."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._pods = Gauge(
            "bayplan_headroom_pods",
            "How many more pods of a shape fit into the cluster",
            ["shape"],
            registry=self.registry,
        )
        self._success = Gauge(
            "bayplan_headroom_last_success_timestamp_seconds",
            "When the pods were counted last, in seconds since 1970",
            registry=self.registry,
        )
        self._failures = Counter(
            "bayplan_headroom_failures",
            "Counts that failed because the cluster or a file could not be read",
            registry=self.registry,
        )
        self._shapes: set[str] = set()

    def show(self, headroom: Headroom) -> None:
        """Show new counts. Shapes that are no longer counted go."""
        counts = {one.shape: one.max.count for one in headroom.shapes}
        for shape in self._shapes - set(counts):
            self._pods.remove(shape)
        for shape, count in counts.items():
            self._pods.labels(shape).set(count)
        self._shapes = set(counts)
        self._success.set(RealClock().epoch_seconds())

    def count_failure(self) -> None:
        """Note a failed count. The other metrics do not change."""
        self._failures.inc()


def serve_headroom(
    first: Headroom,
    count: Callable[[], Headroom],
    address: tuple[str, int],
    interval_seconds: float,
    *,
    ended: threading.Event | None = None,
) -> None:
    """Serve metrics until SIGTERM, SIGINT, or ``ended``.

    ``first``: the counts at the beginning. ``count`` gives new ones; it raises BadInputError or
    UnreadableClusterError if that is impossible now.
    """
    metrics, ended = HeadroomMetrics(), ended or threading.Event()
    metrics.show(first)
    host, port = address
    try:
        server, _ = start_http_server(port, addr=host, registry=metrics.registry)
    except OSError as problem:
        fail(f"--serve {host}:{port}: {problem.strerror}")
    remark(f"metrics: http://{host}:{port}/metrics")
    try:
        with _set_by_sigterm(ended):
            while not ended.wait(interval_seconds):
                try:
                    metrics.show(count())
                except (BadInputError, UnreadableClusterError) as problem:
                    metrics.count_failure()
                    remark(str(problem))
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def _set_by_sigterm(ended: threading.Event) -> Generator[None]:
    """SIGTERM sets the event: as the first process of a container, the command would ignore it."""
    if threading.current_thread() is not threading.main_thread():
        # Only the main thread may handle signals.
        yield
        return
    previous = signal.signal(signal.SIGTERM, lambda _number, _frame: ended.set())
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
