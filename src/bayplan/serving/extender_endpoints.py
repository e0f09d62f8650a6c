"""A profile's plugins as a scheduler extender: the protocol extender/v1 for an unmodified
kube-scheduler.

    POST /filter, /prioritize   the results of the Filter and the Score plugins
    POST /preempt               the nodes that fit without their victims
    /healthz, /livez            the process answers
    /readyz                     every kind was listed once

Questions are answered one at a time, and other requests between them. The size of one question, and
of all questions together, is bounded: bytes, nodes, the size of the pod.
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, final

import msgspec
from aiohttp import web
from msgspec import Raw, Struct, field

from bayplan.api.objects import (
    POD,
    Affinity,
    DecodeError,
    NodeAffinity,
    Pod,
    PodSpec,
    decode,
)
from bayplan.api.quantity import QuantityError
from bayplan.engine.one_shot import EvaluationError, FilterResult, OneShotEvaluator
from bayplan.framework.status import Code
from bayplan.serving.http_server import (
    DEFAULT_LIMITS,
    Guard,
    HttpServer,
    Rate,
    answer_everybody,
    is_loopback,
    refuse_foreign_names,
    refuse_pages,
)
from bayplan.serving.log_lines import Log
from bayplan.state.pods import PodInfo, pod_info

#: The largest question: five thousand whole nodes of 25 KiB each.
QUESTION_BYTES_MAX = 128 * 2**20
#: The bytes of all questions that are being read or answered.
QUESTIONS_BYTES_MAX = 256 * 2**20
NODES_MAX = 65_000
#: The most that etcd stores of one object.
POD_BYTES_MAX = 3 * 2**19
#: The number of tolerations, affinity terms and requirements, and spread constraints of a pod.
#: Plugins compare each with every node or every other pod.
CONSTRAINTS_MAX = 1_000
#: More connections than at the endpoints of `bayplan run`, because the clients are few and known.
_LIMITS = replace(
    DEFAULT_LIMITS, connection_rate_per_peer=Rate(100.0, 200), connection_rate=Rate(200.0, 400)
)
_log = Log("extender")


class _Meta(Struct, frozen=True):
    name: str = ""


class _Node(Struct, frozen=True):
    metadata: _Meta = _Meta()


class _VictimMeta(Struct, frozen=True):
    uid: str = ""


class _Victim(Struct, frozen=True):
    """A pod as a whole object, or its uid."""

    metadata: _VictimMeta = _VictimMeta()
    uid: str = field(name="UID", default="")


class _Victims(Struct, frozen=True):
    pods: list[_Victim] = field(name="Pods", default_factory=list[_Victim])
    pdb_violation_count: int = field(name="NumPDBViolations", default=0)

    @property
    def uids(self) -> list[str]:
        return [pod.uid or pod.metadata.uid for pod in self.pods]


class _Nodes(Struct, frozen=True):
    items: list[Raw] | None = None


@dataclass(frozen=True, slots=True)
class _Question:
    """ExtenderArgs. ``nodes``: the node objects by name, if the scheduler sends them."""

    pod: PodInfo
    names: tuple[str, ...]
    nodes: Mapping[str, Raw] | None


@dataclass(frozen=True, kw_only=True)
class Advice:
    """The evaluator of the questions, and its options."""

    advisor: OneShotEvaluator
    profile: str
    is_ready: Callable[[], bool]
    #: Further field paths of pods that plugins read.
    declared: tuple[str, ...] = ()
    #: The highest score. kube-scheduler's contract says 10, but kube-scheduler does not check it.
    score_max: int = 10


@final
class ExtenderEndpoints:
    """An HTTP server on one address."""

    def __init__(self, advice: Advice) -> None:
        self._advice = advice
        self._server: HttpServer | None = None
        self._bytes_in_use = 0
        #: Questions are answered one at a time.
        self._turn = asyncio.Lock()

    async def start(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> int:
        """Serve; returns the port, which the system chooses for 0. Raises OSError."""
        app = web.Application(client_max_size=QUESTION_BYTES_MAX)
        app.router.add_post("/filter", self._filter)
        app.router.add_post("/prioritize", self._prioritize)
        app.router.add_post("/preempt", self._preempt)
        for path in ("/healthz", "/livez"):
            app.router.add_get(path, self._healthy)
        app.router.add_get("/readyz", self._ready)
        self._server = HttpServer(app, limits=_LIMITS, guard=_guard(host, tls))
        return await self._server.start(host, port, tls)

    async def stop(self) -> None:
        if self._server is not None:
            await self._server.stop()

    # ---- verbs ----------------------------------------------------------------------------

    async def _filter(self, request: web.Request) -> web.Response:
        """Answer a filter question. A failure is the answer's Error, which kube-scheduler shows at
        the pod."""

        def answer(body: bytes) -> Any:
            question = self._question(body)
            advisor, profile = self._advice.advisor, self._advice.profile
            return _filter_result(question, advisor.filter(profile, question.pod, question.names))

        return await self._answer(
            request, "filter", answer, lambda text: _json({"Error": f"bayplan: {text}"})
        )

    async def _prioritize(self, request: web.Request) -> web.Response:
        def answer(body: bytes) -> Any:
            advice, question = self._advice, self._question(body)
            scores = advice.advisor.prioritize(
                advice.profile, question.pod, question.names, advice.score_max
            )
            return [{"Host": name, "Score": score} for name, score in scores.items()]

        return await self._answer(request, "prioritize", answer, _failed)

    async def _preempt(self, request: web.Request) -> web.Response:
        """Answer a preempt question without the nodes that cannot take the pod even without their
        victims."""

        def answer(body: bytes) -> Any:
            pod, parts = self._pod(body)
            victims = _victims(parts)
            _check_count(victims)
            uids = {name: node_victims.uids for name, node_victims in victims.items()}
            fitting = self._advice.advisor.preempt(self._advice.profile, pod, uids)
            left = {name: victims[name] for name in victims if name in fitting}
            return {"NodeNameToMetaVictims": {n: _meta(each) for n, each in left.items()}}

        return await self._answer(request, "preempt", answer, _failed)

    async def _answer(
        self,
        request: web.Request,
        verb: str,
        answer: Callable[[bytes], Any],
        failed: Callable[[str], web.Response],
    ) -> web.Response:
        """``failed``: makes the response for a question without an answer. Raises HTTPException."""
        async with self._body(request) as body, self._turn:
            await asyncio.sleep(0)  # health answers between two questions
            try:
                return _json(answer(body))
            except RecursionError:
                text = "bayplan: found a question that is nested too deeply\n"
                raise web.HTTPBadRequest(text=text) from None
            except (EvaluationError, DecodeError, QuantityError, msgspec.MsgspecError) as problem:
                _log.error("A question was not answered", verb=verb, err=str(problem))
                return failed(str(problem))

    @contextlib.asynccontextmanager
    async def _body(self, request: web.Request) -> AsyncGenerator[bytes]:
        """The body of a question. Its bytes count against the limit of all questions until the
        block ends.

        Raises HTTPException.
        """
        length = request.content_length
        if "Content-Encoding" in request.headers:
            raise web.HTTPUnsupportedMediaType(text="bayplan: wanted no Content-Encoding\n")
        if length is None:
            raise web.HTTPLengthRequired(text="bayplan: wanted a Content-Length\n")
        if length > QUESTION_BYTES_MAX:
            text = f"bayplan: found {length} bytes, wanted {QUESTION_BYTES_MAX} at most\n"
            raise web.HTTPRequestEntityTooLarge(QUESTION_BYTES_MAX, length, text=text)
        if self._bytes_in_use + length > QUESTIONS_BYTES_MAX:
            text = "bayplan: other questions take all the memory there is for them\n"
            raise web.HTTPServiceUnavailable(text=text, headers={"Retry-After": "1"})
        self._bytes_in_use += length
        try:
            yield await request.read()
        finally:
            self._bytes_in_use -= length

    def _question(self, body: bytes) -> _Question:
        """Raises EvaluationError, DecodeError, QuantityError, MsgspecError."""
        pod, parts = self._pod(body)
        names = msgspec.json.decode(parts.get("nodenames", b"null"), type=list[str] | None)
        nodes: dict[str, Raw] | None = None
        if names is None:
            whole = msgspec.json.decode(parts.get("nodes", b"null"), type=_Nodes | None)
            nodes = {_name(item): item for item in (whole and whole.items) or ()}
        _check_count(names if names is not None else nodes or ())
        return _Question(pod, tuple(names if names is not None else nodes or ()), nodes)

    def _pod(self, body: bytes) -> tuple[PodInfo, Mapping[str, Raw]]:
        """(the pod of a question, all members of the question by their lower-case names). Raises
        EvaluationError, DecodeError, QuantityError, MsgspecError."""
        if not self._advice.is_ready():
            raise EvaluationError("the cluster has not been listed yet")
        # As in Go, names of members match in any case.
        written = msgspec.json.decode(body, type=dict[str, Raw])
        parts = {name.lower(): value for name, value in written.items()}
        if "pod" not in parts:
            raise EvaluationError("found no Pod in the question, wanted ExtenderArgs")
        pod = bytes(parts["pod"])
        if len(pod) > POD_BYTES_MAX:
            raise EvaluationError(
                f"found a pod of {len(pod)} bytes, wanted {POD_BYTES_MAX} at most"
            )
        decoded = decode(POD, pod, self._advice.declared)
        assert isinstance(decoded, Pod)
        if not decoded.metadata.uid:
            raise EvaluationError("found a pod without uid, wanted one as the API server has it")
        count = constraint_count(decoded.spec)
        if count > CONSTRAINTS_MAX:
            text = f"found {count} tolerations, affinity terms and spread constraints"
            raise EvaluationError(f"{text} in the pod, wanted {CONSTRAINTS_MAX} at most")
        return pod_info(decoded), parts

    # ---- health ---------------------------------------------------------------------------

    async def _healthy(self, request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def _ready(self, request: web.Request) -> web.Response:
        if self._advice.is_ready():
            return web.Response(text="ok")
        return web.Response(status=500, text="the cluster has not been listed yet\n")


def _guard(host: str, tls: ssl.SSLContext | None) -> Guard:
    """The guard against requests of web pages. A caller with a client certificate needs none."""
    if tls is not None and tls.verify_mode == ssl.CERT_REQUIRED:
        return answer_everybody
    return refuse_foreign_names if is_loopback(host) else refuse_pages


def _failed(text: str) -> web.Response:
    return web.Response(status=500, text=f"bayplan: {text}\n")


def _check_count(nodes: Collection[str]) -> None:
    """Raises EvaluationError."""
    if len(nodes) > NODES_MAX:
        raise EvaluationError(
            f"found {len(nodes)} nodes in the question, wanted {NODES_MAX} at most"
        )


def constraint_count(spec: PodSpec) -> int:
    affinity = spec.affinity or Affinity()
    node = affinity.node_affinity or NodeAffinity()
    node_terms = [
        *((node.required.node_selector_terms or ()) if node.required else ()),
        *(each.preference for each in node.preferred or ()),
    ]
    pod_terms = [
        term
        for part in (affinity.pod_affinity, affinity.pod_anti_affinity)
        if part is not None
        for term in (
            *(part.required or ()),
            *(each.pod_affinity_term for each in part.preferred or ()),
        )
    ]
    constraints = spec.topology_spread_constraints or ()
    selectors = [each.label_selector for each in (*pod_terms, *constraints)]
    return (
        len(spec.tolerations or ())
        + len(node_terms)
        + sum(len(term.match_expressions or ()) for term in node_terms)
        + len(pod_terms)
        + len(constraints)
        + sum(len(each.match_expressions or ()) for each in selectors if each is not None)
    )


def _name(item: Raw) -> str:
    return msgspec.json.decode(item, type=_Node).metadata.name


def _victims(parts: Mapping[str, Raw]) -> dict[str, _Victims]:
    """The victims by node: uids from a scheduler with nodeCacheCapable, else whole pods."""
    for member in ("nodenametometavictims", "nodenametovictims"):
        decoded = msgspec.json.decode(
            parts.get(member, b"null"), type=dict[str, _Victims | None] | None
        )
        if decoded is not None:
            return {name: victims or _Victims() for name, victims in decoded.items()}
    raise EvaluationError("found no victims in the question, wanted ExtenderPreemptionArgs")


def _meta(victims: _Victims) -> dict[str, Any]:
    """MetaVictims."""
    pods = [{"UID": uid} for uid in victims.uids]
    return {"Pods": pods, "NumPDBViolations": victims.pdb_violation_count}


def _filter_result(question: _Question, result: FilterResult) -> dict[str, Any]:
    """ExtenderFilterResult."""
    nodes: dict[str, Any] | None = None
    names: list[str] | None = result.fitting
    if question.nodes is not None:
        nodes = {"metadata": {}, "items": [question.nodes[name] for name in result.fitting]}
        names = None
    failed = {
        name: status.message
        for name, status in result.rejected.items()
        if status.code is not Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    }
    for_good = {name: s.message for name, s in result.rejected.items() if name not in failed}
    return {
        "Nodes": nodes,
        "NodeNames": names,
        "FailedNodes": failed,
        "FailedAndUnresolvableNodes": for_good,
        "Error": "",
    }


def _json(content: Any) -> web.Response:
    return web.Response(body=msgspec.json.encode(content), content_type="application/json")
