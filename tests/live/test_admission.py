"""The API server in memory beside a real kube-apiserver: verdicts, texts and objects.

Each drawn pod is sent to a real server as a dry run, and created in memory. Both must accept it as
the same object, or refuse it with the same code and the same text. A list of causes has no fixed
order upstream, so it is compared as a set.
"""

import json
import os
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from bayplan.adapters.embedded.cluster import EmbeddedCluster
from bayplan.api.object_meta import resource_of
from bayplan.api.quantity import QuantityError, parse
from bayplan.clock import ManualClock
from bayplan.objects.keys import ObjectKey, is_namespaced, kind_of
from bayplan.ports import ApiError
from tests.live.conftest import started
from tests.live.control_plane import ControlPlane
from tests.live.drawn_pods import Content, PodDraw, residents, setup

pytestmark = pytest.mark.timeout(900)

PODS = 300
#: Set the variable to draw other pods.
SEED = int(os.environ.get("BAYPLAN_DRAW_SEED", "1"))
READY_SECONDS = 60.0


class Verdict(NamedTuple):
    """The answer to the creation of one pod."""

    code: int
    #: The causes of a refusal.
    causes: tuple[str, ...]
    #: What is read of an accepted pod.
    stored: Content


# ---- a real server --------------------------------------------------------------------------


class RealServer:
    """Requests of an administrator."""

    def __init__(self, plane: ControlPlane) -> None:
        self._request = plane.request

    def create(self, content: Content, *, is_dry: bool = False) -> tuple[int, Content]:
        return self._request("POST", _path(content) + ("?dryRun=All" if is_dry else ""), content)

    def prepare(self) -> None:
        """Create what decides about pods. Quotas get the usage that no controller writes here."""
        for each in setup():
            code, answer = self.create(each)
            assert code == 201, answer
            if each["kind"] == "ResourceQuota":
                hard = each["spec"]["hard"]
                status = {"hard": hard, "used": dict.fromkeys(hard, "0")}
                path = f"{_path(each)}/{each['metadata']['name']}/status"
                code, answer = self._request("PUT", path, {**answer, "status": status})
                assert code == 200, answer
        deadline = time.monotonic() + READY_SECONDS
        for each in (*_probes(), *residents()):
            is_dry = each["metadata"]["name"] == "probe"
            while (result := self.create(each, is_dry=is_dry))[0] != 201:
                assert time.monotonic() < deadline, result
                time.sleep(0.2)

    def verdict(self, pod: Content) -> Verdict:
        code, answer = self.create(pod, is_dry=True)
        if code != 201:
            return Verdict(code, _causes(answer["message"]), {})
        return Verdict(code, (), _read(answer))


def _probes() -> Iterator[Content]:
    """Pods that are accepted when the server has learned of the classes."""
    for spec in ({"priorityClassName": "meek"}, {"runtimeClassName": "wide"}):
        meta = {"name": "probe", "namespace": "plain"}
        containers = [{"name": "c", "image": "i"}]
        spec = {**spec, "containers": containers}
        yield {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def _path(content: Content) -> str:
    version, kind = content["apiVersion"], kind_of(content)
    root = f"/api/{version}" if version == "v1" else f"/apis/{version}"
    namespace = content["metadata"].get("namespace")
    where = f"/namespaces/{namespace}" if is_namespaced(kind) else ""
    return f"{root}{where}/{resource_of(kind)}"


# ---- the server in memory -------------------------------------------------------------------


class ServerInMemory:
    """The same objects in memory."""

    def __init__(self) -> None:
        self._cluster = EmbeddedCluster(ManualClock())
        for each in (*setup(), *residents()):
            self._cluster.create(each)

    def verdict(self, pod: Content) -> Verdict:
        try:
            stored = self._cluster.create(pod)
        except ApiError as problem:
            return Verdict(problem.code, _causes(str(problem)), {})
        meta = pod["metadata"]
        self._cluster.delete(ObjectKey("v1 Pod", meta["namespace"], meta["name"]))
        return Verdict(201, (), _read(stored.content))


# ---- comparing ------------------------------------------------------------------------------


_SPEC = (
    "activeDeadlineSeconds",
    "affinity",
    "nodeSelector",
    "overhead",
    "preemptionPolicy",
    "priority",
    "priorityClassName",
    "resourceClaims",
    "restartPolicy",
    "runtimeClassName",
    "schedulerName",
    "schedulingGates",
    "tolerations",
    "topologySpreadConstraints",
)
_CONTAINER = ("name", "restartPolicy")
_AMOUNTS = ("requests", "limits")


def _causes(message: str) -> tuple[str, ...]:
    """The parts of a message: what is refused, and what follows, in a fixed order."""
    head, mark, tail = message.partition(": [")
    if not mark or not tail.endswith("]"):
        return (message,)
    return (head, *sorted(tail[:-1].split(", ")))


def _read(pod: Content) -> Content:
    """What a scheduler or admission reads of a stored pod."""
    spec, meta = pod["spec"], pod["metadata"]
    return {
        **{name: _plain(spec[name]) for name in _SPEC if spec.get(name)},
        "labels": meta.get("labels") or {},
        "annotations": meta.get("annotations") or {},
        "resources": _amounts(spec.get("resources") or {}),
        "volumes": [
            (each["name"], each.get("persistentVolumeClaim")) for each in spec.get("volumes") or ()
        ],
        **{
            field: [_container(each) for each in spec.get(field) or ()]
            for field in ("containers", "initContainers")
        },
    }


def _container(container: Content) -> Content:
    ports = [
        {name: port[name] for name in ("containerPort", "hostPort", "protocol") if name in port}
        for port in container.get("ports") or ()
    ]
    resources = container.get("resources") or {}
    members = {name: container[name] for name in _CONTAINER if container.get(name)}
    return {**members, "ports": ports, **_amounts(resources), "claims": resources.get("claims")}


def _amounts(resources: Content) -> Content:
    return {field: _plain(resources.get(field) or {}) for field in _AMOUNTS}


def _plain(value: Any) -> Any:
    """A value with quantities as numbers, and without empty members."""
    if isinstance(value, dict):
        return {name: _plain(member) for name, member in value.items() if member not in ("", None)}
    if isinstance(value, list):
        return [_plain(member) for member in value]
    try:
        return parse(value)
    except (QuantityError, ArithmeticError):
        return value


@pytest.fixture(scope="module")
def default_plane() -> Iterator[ControlPlane]:
    """A server with its default admission; without ServiceAccounts, for no controller makes any."""
    yield from started(disabled_admission="ServiceAccount")


def test_drawn_pods_get_the_verdict_the_text_and_the_object_of_a_real_server(
    default_plane: ControlPlane,
) -> None:
    print(f"seed {SEED}")
    real, memory, draw = RealServer(default_plane), ServerInMemory(), PodDraw(SEED)
    real.prepare()
    accepted = 0
    differences: list[str] = []
    for _ in range(PODS):
        pod = draw.pod()
        expected, found = real.verdict(pod), memory.verdict(pod)
        accepted += expected.code == 201
        if found != expected:
            differences.append(f"{json.dumps(pod)}\n  real: {expected}\n  ours: {found}")
    print(f"{PODS - len(differences)} of {PODS} are equal, {accepted} accepted")
    assert differences == []
    assert PODS // 10 < accepted < PODS - PODS // 10
