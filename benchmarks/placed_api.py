"""An API server with nodes and placed pods that accepts bindings: enough for kube-scheduler.

It is there to measure the memory of a scheduler beside it. Nodes and pods are streamed as the first
events of a watch; everything else is an empty list. Nothing is stored: a binding is counted.
"""

import json
import threading
from collections.abc import Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

from benchmarks import shapes
from benchmarks.shapes import Object, Shape

_KINDS = {"/api/v1/nodes": "Node", "/api/v1/pods": "Pod"}
_INITIAL_EVENTS_END = {"k8s.io/initial-events-end": "true"}


class PlacedApi:
    """Serves one shape's cluster while its context is open."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._left = shape.pods
        self._lock = threading.Lock()
        #: Set when all of the shape's pods were bound.
        self.is_done = threading.Event()
        self.is_closing = threading.Event()
        handler = type("_Handler", (_Requests,), {"api": self})
        self._server = _Server(("127.0.0.1", 0), handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def objects(self, kind: str) -> Iterator[Object]:
        if kind == "Node":
            contents: Iterable[Object] = shapes.nodes(self._shape)
        else:
            contents = chain(shapes.init_pods(self._shape), shapes.pods(self._shape))
        for each in contents:
            meta = {**each["metadata"], "resourceVersion": "1"}
            yield {**each, "apiVersion": "v1", "kind": kind, "metadata": meta}

    def bound(self) -> None:
        with self._lock:
            self._left -= 1
            if self._left == 0:
                self.is_done.set()

    def __enter__(self) -> "PlacedApi":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.is_closing.set()
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore the error of a client that was stopped."""


class _Requests(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    api: ClassVar[PlacedApi]

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query, kind = parse_qs(parts.query), _KINDS.get(parts.path)
        is_first = "sendInitialEvents" in query
        if is_first and kind is None:
            # The client then requests a list.
            self._answer(422, {"kind": "Status", "apiVersion": "v1", "reason": "Invalid"})
        elif "watch" in query:
            self._watch(kind if is_first else None)
        else:
            items = list(self.api.objects(kind)) if kind is not None else []
            self._answer(200, {"metadata": {"resourceVersion": "1"}, "items": items})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._answer(201, {"kind": "Status", "apiVersion": "v1", "status": "Success"})
        if urlsplit(self.path).path.endswith("/binding"):
            self.api.bound()

    def do_PATCH(self) -> None:
        self.do_POST()

    def _watch(self, kind: str | None) -> None:
        """Send the events of all objects, and then none."""
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            if kind is not None:
                for each in self.api.objects(kind):
                    self._event("ADDED", each)
                meta = {"resourceVersion": "1", "annotations": _INITIAL_EVENTS_END}
                end = {"apiVersion": "v1", "kind": kind, "metadata": meta}
                self._event("BOOKMARK", end)
            self.wfile.flush()
            self.api.is_closing.wait()
        except OSError:
            self.close_connection = True

    def _event(self, what: str, content: Object) -> None:
        line = json.dumps({"type": what, "object": content}).encode() + b"\n"
        self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))

    def _answer(self, code: int, content: Any) -> None:
        body = json.dumps(content).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
        """Log nothing."""
