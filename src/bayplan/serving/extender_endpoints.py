"""A profile's plugins as a scheduler extender: the protocol extender/v1 for an unmodified
kube-scheduler.

    POST /filter, /prioritize   what the Filter and the Score plugins say
    POST /preempt               which nodes would do when their victims have left
    /healthz, /livez            the process answers
    /readyz                     every kind was listed once
"""

import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, final

import msgspec
from aiohttp import web
from msgspec import Raw, Struct, field

from bayplan.api.objects import POD, DecodeError, Pod, decode
from bayplan.api.quantity import QuantityError
from bayplan.engine.advice import Advisor, FilterAdvice, NoAdviceError
from bayplan.framework.status import Code
from bayplan.serving.log_lines import Log
from bayplan.state.pods import PodInfo, pod_info

#: Five thousand nodes, whole.
_BODY_BYTES_MAX = 512 * 2**20
_SHUTDOWN_SECONDS = 2.0
_log = Log("extender")


class _Meta(Struct, frozen=True):
    name: str = ""


class _Node(Struct, frozen=True):
    metadata: _Meta = _Meta()


class _VictimMeta(Struct, frozen=True):
    uid: str = ""


class _Victim(Struct, frozen=True):
    """A whole pod, or its uid alone."""

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
    """ExtenderArgs. ``nodes``: whole ones by name, from a scheduler that sends them."""

    pod: PodInfo
    names: tuple[str, ...]
    nodes: Mapping[str, Raw] | None


@dataclass(frozen=True, kw_only=True)
class Advice:
    """Who is asked, and how."""

    advisor: Advisor
    profile: str
    is_ready: Callable[[], bool]
    #: Further field paths that plugins read of pods.
    declared: tuple[str, ...] = ()
    #: What the best node could get; kube-scheduler's contract says 10, and it checks nothing.
    score_max: int = 10


@final
class ExtenderEndpoints:
    """An HTTP server on one address."""

    def __init__(self, advice: Advice) -> None:
        self._advice = advice
        self._runner: web.AppRunner | None = None

    async def start(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> int:
        """Serve; returns the port, which the system chooses for 0. Raises OSError."""
        app = web.Application(client_max_size=_BODY_BYTES_MAX)
        app.router.add_post("/filter", self._filter)
        app.router.add_post("/prioritize", self._prioritize)
        app.router.add_post("/preempt", self._preempt)
        for path in ("/healthz", "/livez"):
            app.router.add_get(path, self._healthy)
        app.router.add_get("/readyz", self._ready)
        runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=_SHUTDOWN_SECONDS, handle_signals=False
        )
        await runner.setup()
        self._runner = runner
        await web.TCPSite(runner, host, port, ssl_context=tls, reuse_address=True).start()
        return runner.addresses[0][1]

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    # ---- verbs ----------------------------------------------------------------------------

    async def _filter(self, request: web.Request) -> web.Response:
        """What goes wrong is the answer's Error: kube-scheduler shows it at the pod."""
        try:
            question = self._question(await request.read())
            found = self._advice.advisor.filter(self._advice.profile, question.pod, question.names)
        except (NoAdviceError, DecodeError, QuantityError, msgspec.MsgspecError) as problem:
            _log.error("A question to filter was not answered", err=str(problem))
            return _json({"Error": f"bayplan: {problem}"})
        return _json(_filter_result(question, found))

    async def _prioritize(self, request: web.Request) -> web.Response:
        advice = self._advice
        try:
            question = self._question(await request.read())
            scores = advice.advisor.prioritize(
                advice.profile, question.pod, question.names, advice.score_max
            )
        except (NoAdviceError, DecodeError, QuantityError, msgspec.MsgspecError) as problem:
            _log.error("A question to prioritize was not answered", err=str(problem))
            return web.Response(status=500, text=f"bayplan: {problem}\n")
        return _json([{"Host": name, "Score": score} for name, score in scores.items()])

    async def _preempt(self, request: web.Request) -> web.Response:
        """Nodes that would not do all the same are left out: nobody need leave them."""
        advice = self._advice
        try:
            pod, parts = self._pod(await request.read())
            victims = _victims(parts)
            uids = {name: found.uids for name, found in victims.items()}
            fitting = advice.advisor.preempt(advice.profile, pod, uids)
        except (NoAdviceError, DecodeError, QuantityError, msgspec.MsgspecError) as problem:
            _log.error("A question to preempt was not answered", err=str(problem))
            return web.Response(status=500, text=f"bayplan: {problem}\n")
        left = {name: victims[name] for name in victims if name in fitting}
        return _json({"NodeNameToMetaVictims": {n: _meta(each) for n, each in left.items()}})

    def _question(self, body: bytes) -> _Question:
        """Raises NoAdviceError, DecodeError, QuantityError, MsgspecError."""
        pod, parts = self._pod(body)
        names = msgspec.json.decode(parts.get("nodenames", b"null"), type=list[str] | None)
        nodes: dict[str, Raw] | None = None
        if names is None:
            whole = msgspec.json.decode(parts.get("nodes", b"null"), type=_Nodes | None)
            nodes = {_name(item): item for item in (whole and whole.items) or ()}
        return _Question(pod, tuple(names if names is not None else nodes or ()), nodes)

    def _pod(self, body: bytes) -> tuple[PodInfo, Mapping[str, Raw]]:
        """Whom it is about, and the other members. Raises NoAdviceError, DecodeError,
        QuantityError, MsgspecError."""
        if not self._advice.is_ready():
            raise NoAdviceError("the cluster has not been listed yet")
        # Names of members count in any case, as in Go.
        written = msgspec.json.decode(body, type=dict[str, Raw])
        parts = {name.lower(): value for name, value in written.items()}
        if "pod" not in parts:
            raise NoAdviceError("found no Pod in the question, wanted ExtenderArgs")
        found = decode(POD, bytes(parts["pod"]), self._advice.declared)
        assert isinstance(found, Pod)
        if not found.metadata.uid:
            raise NoAdviceError("found a pod without uid, wanted one as the API server has it")
        return pod_info(found), parts

    # ---- health ---------------------------------------------------------------------------

    async def _healthy(self, request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def _ready(self, request: web.Request) -> web.Response:
        if self._advice.is_ready():
            return web.Response(text="ok")
        return web.Response(status=500, text="the cluster has not been listed yet\n")


def _name(item: Raw) -> str:
    return msgspec.json.decode(item, type=_Node).metadata.name


def _victims(parts: Mapping[str, Raw]) -> dict[str, _Victims]:
    """By node; named by a scheduler that counts on our knowing pods, else whole."""
    for member in ("nodenametometavictims", "nodenametovictims"):
        found = msgspec.json.decode(
            parts.get(member, b"null"), type=dict[str, _Victims | None] | None
        )
        if found is not None:
            return {name: victims or _Victims() for name, victims in found.items()}
    raise NoAdviceError("found no victims in the question, wanted ExtenderPreemptionArgs")


def _meta(victims: _Victims) -> dict[str, Any]:
    """MetaVictims."""
    pods = [{"UID": uid} for uid in victims.uids]
    return {"Pods": pods, "NumPDBViolations": victims.pdb_violation_count}


def _filter_result(question: _Question, found: FilterAdvice) -> dict[str, Any]:
    """ExtenderFilterResult."""
    nodes: dict[str, Any] | None = None
    names: list[str] | None = found.fitting
    if question.nodes is not None:
        nodes = {"metadata": {}, "items": [question.nodes[name] for name in found.fitting]}
        names = None
    failed = {
        name: status.message
        for name, status in found.rejected.items()
        if status.code is not Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    }
    for_good = {name: s.message for name, s in found.rejected.items() if name not in failed}
    return {
        "Nodes": nodes,
        "NodeNames": names,
        "FailedNodes": failed,
        "FailedAndUnresolvableNodes": for_good,
        "Error": "",
    }


def _json(content: Any) -> web.Response:
    return web.Response(body=msgspec.json.encode(content), content_type="application/json")
