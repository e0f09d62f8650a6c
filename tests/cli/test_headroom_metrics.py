"""`bayplan headroom --serve`: metrics that follow the cluster."""

import os
import signal
import socket
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from bayplan.cli.cluster_source import UnreadableClusterError
from bayplan.cli.headroom_metrics import HeadroomMetrics, serve_headroom
from bayplan.durations import DESCRIPTION
from bayplan.whatif.fit import MaxFit
from bayplan.whatif.headroom import Headroom, ShapeHeadroom
from tests.cli.command_line import refusal, write_objects
from tests.kit.manifests import node, pod


def counted(**counts: int) -> Headroom:
    return Headroom(
        cluster="test",
        shapes=tuple(
            ShapeHeadroom(shape=name, requests={}, max=MaxFit(workload=name, count=count))
            for name, count in counts.items()
        ),
    )


def value(metrics: HeadroomMetrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


def test_the_series_of_a_shape_that_is_no_longer_counted_is_removed() -> None:
    metrics = HeadroomMetrics()
    metrics.show(counted(small=3, large=1))
    metrics.show(counted(small=2))
    assert value(metrics, "bayplan_headroom_pods", shape="small") == 2
    assert value(metrics, "bayplan_headroom_pods", shape="large") is None
    assert value(metrics, "bayplan_headroom_last_success_timestamp_seconds")


def free_port() -> int:
    with closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def test_a_failed_count_leaves_the_metrics_unchanged() -> None:
    port, ended, failed = free_port(), threading.Event(), threading.Event()
    counts: Iterator[Headroom | None] = iter([counted(small=5), None])

    def count() -> Headroom:
        headroom = next(counts, None)
        if headroom is None:
            failed.set()
            raise UnreadableClusterError("the server is away")
        return headroom

    arguments = (counted(small=7), count, ("127.0.0.1", port), 0.01)
    server = threading.Thread(target=serve_headroom, args=arguments, kwargs={"ended": ended})
    server.start()
    try:
        assert failed.wait(30)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as response:
            text = response.read().decode()
    finally:
        ended.set()
        server.join(30)
    assert 'bayplan_headroom_pods{shape="small"} 5.0' in text
    assert "bayplan_headroom_failures_total" in text


def test_sigterm_ends_the_server() -> None:
    handler = signal.getsignal(signal.SIGTERM)

    def count() -> Headroom:
        os.kill(os.getpid(), signal.SIGTERM)
        return counted(small=5)

    serve_headroom(counted(small=7), count, ("127.0.0.1", free_port()), 0.01)
    assert signal.getsignal(signal.SIGTERM) is handler


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--serve", "9400x"), '--serve: found "9400x", wanted HOST:PORT or :PORT'),
        (
            ("--serve", ":9400", "--interval", "0"),
            f'--interval: found "0", wanted {DESCRIPTION}',
        ),
    ],
)
def test_invalid_options_are_refused(
    options: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    cluster = write_objects(tmp_path / "cluster.yaml", node("n1"))
    shapes = write_objects(tmp_path / "shapes.yaml", pod("small", cpu="1"))
    assert refusal("headroom", "-f", shapes, cluster, *options) == [message]
