"""The endpoints over loopback."""

import asyncio
import ssl
from dataclasses import dataclass, replace
from typing import Any

import aiohttp

from bayplan.serving.access import Access, Denial, Owner
from bayplan.serving.certificates import self_signed_context
from bayplan.serving.decision_history import decode
from bayplan.serving.endpoints import Endpoints, EndpointSources
from tests.serving.endpoint_sources import BOUND, sources


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes
    headers: Any

    @property
    def text(self) -> str:
        return self.body.decode()


def ask(
    path: str,
    endpoint_sources: EndpointSources | None = None,
    *,
    access: Access | None = None,
    tls: ssl.SSLContext | None = None,
    method: str = "GET",
) -> Answer:
    async def main() -> Answer:
        endpoints = Endpoints(endpoint_sources or sources(), access)
        port = await endpoints.start("127.0.0.1", 0, tls)
        scheme = "https" if tls else "http"
        headers = {"Authorization": "Bearer t"}
        try:
            async with aiohttp.ClientSession(headers=headers) as session:
                url = f"{scheme}://127.0.0.1:{port}{path}"
                async with session.request(method, url, ssl=False) as answer:
                    return Answer(answer.status, await answer.read(), answer.headers)
        finally:
            await endpoints.stop()

    return asyncio.run(main())


def test_a_server_that_answers_is_live() -> None:
    for path in ("/livez", "/healthz"):
        answer = ask(path, sources(caches=False))
        assert (answer.status, answer.text) == (200, "ok")


def test_a_server_is_ready_when_all_caches_are_synced() -> None:
    assert ask("/readyz", sources(caches=True)).text == "ok"
    answer = ask("/readyz", sources(caches=False, shutdown=True))
    assert answer.status == 500
    assert answer.text == (
        "[+]ping ok\n[-]caches failed: reason withheld\n[+]shutdown ok\nreadyz check failed\n"
    )


def test_verbose_lists_each_check() -> None:
    answer = ask("/readyz?verbose", sources(caches=True))
    assert answer.text == "[+]ping ok\n[+]caches ok\nreadyz check passed\n"


def test_metrics_have_the_prometheus_text_format() -> None:
    answer = ask("/metrics")
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    line = 'scheduler_schedule_attempts_total{profile="bayplan",result="scheduled"} 1.0'
    assert line in answer.text
    assert answer.headers["Cache-Control"] == "no-cache, private"


def test_the_configuration_is_served() -> None:
    answer = ask("/configz")
    assert answer.text == '{"componentconfig": {"kind": "KubeSchedulerConfiguration"}}'


def test_the_journal_of_a_pod_is_served() -> None:
    answer = decode(ask("/debug/journal?pod=a/p").body)
    assert answer.records == (BOUND,)


def test_a_journal_request_needs_namespace_and_name() -> None:
    answer = ask("/debug/journal?pod=p")
    assert answer.status == 400
    assert "wanted ?pod=namespace/name" in answer.text


def test_writing_methods_are_refused() -> None:
    assert ask("/metrics", method="POST").status == 405


class DeniesAll:
    def __init__(self) -> None:
        self.requests: list[tuple[str, str]] = []

    async def denial(
        self, path: str, authorization: str, owner: Owner | None, peer: str = ""
    ) -> Denial | None:
        self.requests.append((path, authorization))
        return Denial(403, "Forbidden: no")


def test_an_unauthorized_user_gets_no_content() -> None:
    access = DeniesAll()
    answer = ask("/configz", access=access)
    assert (answer.status, answer.text) == (403, "Forbidden: no\n")
    assert access.requests == [("/configz", "Bearer t")]


def test_endpoints_are_served_over_tls() -> None:
    assert ask("/livez", tls=self_signed_context("127.0.0.1", 1_767_225_600.0)).text == "ok"


def test_metrics_are_disabled_by_their_full_name() -> None:
    hidden = frozenset(("scheduler_schedule_attempts_total", "scheduler_goroutines"))
    text = ask("/metrics", replace(sources(), hidden_metrics=hidden)).text
    assert "scheduler_schedule_attempts_total" not in text
    assert "scheduler_goroutines" not in text
    assert "scheduler_pending_pods" in text
