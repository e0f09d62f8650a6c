"""`bayplan why`, for a stored run and for a running scheduler."""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.cli.remote_history import Address, NotAnsweredError, address_of, history_from
from bayplan.serving.access import Denial
from bayplan.serving.certificates import self_signed_context
from bayplan.serving.endpoints import Endpoints
from tests.cli.command_line import answer, profile, refusal, write_objects
from tests.kit.manifests import Content, container, node, pod
from tests.live.processes import free_port
from tests.serving.endpoint_sources import BOUND, served, sources
from tests.sim.manifests import scenario

# ---- stored runs ----------------------------------------------------------------------------


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Two nodes, one added later; one pod that waited for that node, and one that still waits."""
    bigger = node("n2", status={"allocatable": {"cpu": "32", "memory": "8Gi", "pods": "110"}})
    events = scenario({"at": "5s", "create": [bigger]})
    runs = pod("runs", nodeName="n1")
    theirs = pod("theirs", schedulerName="theirs")
    pods = (
        pod("late", cpu="16"),
        pod("never", cpu="64"),
        pod("x", cpu="1", namespace="kube"),
    )
    file = write_objects(tmp_path / "in.yaml", node("n1"), runs, theirs, *pods, events)
    config = write_objects(tmp_path / "c.yaml", profile())
    answer("simulate", file, "--config", config, "--out", tmp_path / "run")
    return tmp_path / "run"


def test_attempts_are_explained_from_the_first(run: Path) -> None:
    text = answer("why", "default/late", "--run", run)
    first, second = text.index("0.000 s  attempt 1 "), text.index("5.000 s  attempt 2 ")
    assert first < text.index("1 Insufficient cpu") < second
    assert text.splitlines()[-1] == "5.000 s  binding to n2: bound"


def test_a_pod_without_a_namespace_is_in_default(run: Path) -> None:
    assert answer("why", "late", "--run", run) == answer("why", "default/late", "--run", run)


def test_a_group_is_addressed_by_its_kind(tmp_path: Path) -> None:
    group = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"minMember": 2},
    }
    label = {"scheduling.x-k8s.io/pod-group": "g"}
    pods = [pod(name, cpu="3", labels=label) for name in ("a", "b")]
    file = write_objects(tmp_path / "in.yaml", node("n1"), group, *pods)
    answer("simulate", file, "--out", tmp_path / "run")
    text = answer("why", "podgroup", "default/g", "--run", tmp_path / "run")
    assert "attempt 1: unschedulable, nothing is held: 1 fit (minMember 2," in text
    assert "group default/g: 1 of 2 members fit; the 2nd, default/b: 0/1 nodes" in text
    end = "at the end of the run, the group is Pending; no member runs or has ended"
    assert text.splitlines()[-1] == end
    assert answer("why", "pg", "g", "--run", tmp_path / "run") == text
    (message,) = refusal("why", "podgroup", "x", "--run", tmp_path / "run")
    assert "known names include: podgroup default/g" in message
    (message,) = refusal("why", "podgroup", "g", "--run", tmp_path / "run", "--node", "n1")
    assert "--node, --attempt: these options explain an attempt of one pod" in message
    (message,) = refusal("why", "jobb", "g", "--run", tmp_path / "run")
    assert "found jobb g, wanted NAMESPACE/NAME of a pod, podgroup NAMESPACE/NAME, or " in message
    assert message.endswith('did you mean "job"?')


def test_one_attempt_can_be_selected(run: Path) -> None:
    text = answer("why", "late", "--run", run, "--attempt", "1")
    assert "attempt 1 " in text
    assert "attempt 2 " not in text


def test_one_node_is_explained_by_a_replay(run: Path) -> None:
    lines = answer("why", "late", "--run", run, "--node", "n1").splitlines()
    assert lines[0].startswith("5.000 s  attempt 2 at default/late: chose n2")
    assert lines[1].startswith("n1: rejected by NodeResourcesFit: Insufficient cpu (")


def test_an_unknown_node_is_refused_with_the_nearest_names(run: Path) -> None:
    assert refusal("why", "late", "--run", run, "--node", "n3") == [
        f"{run}: no node n3 in this run; there are 2, for example: n1, n2"
    ]


def deployment(name: str, replicas: int, cpu: str, namespace: str = "shop") -> Content:
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container(cpu)]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A Deployment with one waiting pod, and a Deployment of the same name in another namespace."""
    deployments = (deployment("web", 3, "2"), deployment("web", 1, "0", namespace="other"))
    file = write_objects(tmp_path / "in.yaml", node("n1"), *deployments)
    answer("simulate", file, "--out", tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize(
    "words",
    [
        ("deployment/web", "--namespace", "shop"),
        ("deploy", "web", "-n", "shop"),
        ("deployments", "shop/web"),
    ],
)
def test_a_workload_is_explained_by_groups_of_its_pods(shop: Path, words: tuple[str, ...]) -> None:
    lines = answer("why", *words, "--run", shop).splitlines()
    assert lines[0] == "Deployment/web in shop: 3 pods, 2 with a node, 1 waiting"
    assert any(line.startswith("n1        2   shop/web-") for line in lines)
    assert any("1 lack cpu" in line for line in lines)
    assert any(line.startswith("the last attempt at shop/web-") for line in lines)


def test_a_workload_without_pods_is_refused_with_the_nearest_names(shop: Path) -> None:
    (message,) = refusal("why", "deployment/wbe", "-n", "shop", "--run", shop)
    assert message.startswith(
        f"{shop}: no pod belongs to Deployment/wbe in shop; known workloads include: "
    )
    assert "Deployment/web in shop" in message


def test_a_running_scheduler_does_not_know_workloads() -> None:
    assert refusal("why", "deployment/web", "--address", "127.0.0.1:1") == [
        "Deployment/web: wanted --run; with --address, name one of its pods"
    ]


def test_two_different_namespaces_are_refused(shop: Path) -> None:
    (message,) = refusal("why", "shop/web", "-n", "other", "--run", shop)
    assert message == "found shop/web and --namespace other, wanted one namespace"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("runs", "default/runs came with a node, n1: there was nothing to decide"),
        ("theirs", "default/theirs is left to another scheduler: there was nothing to decide"),
    ],
)
def test_a_pod_without_a_decision_has_an_answer(run: Path, name: str, message: str) -> None:
    assert answer("why", name, "--run", run) == f"{message}\n"


def test_a_pod_of_another_namespace_is_suggested(run: Path) -> None:
    [line] = refusal("why", "x", "--run", run)
    assert line == f"{run}: there is no decision about default/x; known names include: kube/x"


def test_an_unknown_attempt_is_refused(run: Path) -> None:
    for more in ((), ("--node", "n1")):
        [line] = refusal("why", "late", "--run", run, "--attempt", "7", *more)
        assert line == f"{run}: no attempt 7 at default/late; known attempts: 1, 2"


def test_a_pod_that_was_never_tried_has_no_node_to_explain(tmp_path: Path) -> None:
    gated = pod("gated", schedulingGates=[{"name": "example.com/g"}])
    file = write_objects(tmp_path / "in.yaml", node("n1"), gated)
    answer("simulate", file, "--out", tmp_path / "run")
    assert "held back by SchedulingGates" in answer("why", "gated", "--run", tmp_path / "run")
    [line] = refusal("why", "gated", "--run", tmp_path / "run", "--node", "n1")
    assert line.endswith("no attempt at default/gated; known attempts: none")


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    [line] = refusal("why", "late", "--run", tmp_path)
    assert "this folder contains no run" in line


@pytest.mark.parametrize("file", ["journal.jsonl", "run.json", "states/000000.jsonl"])
def test_a_damaged_run_is_refused_with_the_file(run: Path, file: str) -> None:
    (run / file).write_text("no longer\n")
    [line] = refusal("why", "late", "--run", run, "--node", "n1")
    assert f"{run}/{file}: " in line


def test_plugins_of_the_run_are_loaded(tmp_path: Path) -> None:
    source = (
        "from bayplan import ScalarFilterPlugin, unschedulable\n"
        "class Picky(ScalarFilterPlugin):\n"
        "    name = 'Picky'\n"
        "    def filter_node(self, state, pod, node):\n"
        "        return unschedulable('not today') if node.name == 'n1' else None\n"
    )
    plugin = write_objects(tmp_path / "picky.py", source)
    file = write_objects(tmp_path / "in.yaml", node("n1"), node("n2"), pod("a"))
    config = write_objects(tmp_path / "c.yaml", profile(filter=["Picky"]))
    answer("simulate", file, "--plugin", plugin, "--config", config, "--out", tmp_path / "run")
    for path in (plugin, config, file):
        path.unlink()
    question = ("why", "a", "--run", tmp_path / "run", "--node", "n1")
    (line,) = refusal(*question)
    assert line == (
        f'{tmp_path}/run: the run has the plugins "picky.py", which are code; --allow-plugins '
        f"executes the copies in the folder, --plugin FILE.py a file of yours"
    )
    assert "Picky" in answer("why", "a", "--run", tmp_path / "run")
    text = answer(*question, "--allow-plugins")
    assert "n1: rejected by Picky: not today (Unschedulable)" in text


# ---- a running scheduler --------------------------------------------------------------------


@pytest.fixture
def address() -> Iterator[str]:
    """Endpoints with one binding in the decision history."""
    yield from served(sources(), free_port())


def refusal_text(*arguments: str) -> str:
    return " ".join(refusal(*arguments))


def test_a_running_scheduler_returns_its_records(address: str) -> None:
    assert answer("why", "a/p", "--address", address).splitlines() == [
        "times are seconds since the scheduler's start, 2026-01-01T00:00:00Z",
        "1.000 s  binding to n1: bound",
    ]


def test_an_unknown_pod_of_a_running_scheduler_is_reported(address: str) -> None:
    message = refusal_text("why", "a/x", "--address", address)
    assert "no record of a/x among 1 records" in message
    assert "known names include: a/p" in message
    assert "no record of attempt 3 at a/p" in refusal_text(
        "why", "a/p", "--address", address, "--attempt", "3"
    )


def test_records_are_printed_as_a_document(run: Path, address: str) -> None:
    document = json.loads(answer("why", "late", "--run", run, "-o", "json"))
    assert (document["kind"], document["hasNode"]) == ("Decisions", True)
    assert [record["type"] for record in document["records"]] == ["attempt", "attempt", "binding"]
    workload_of_pods = yaml.safe_load(answer("why", "a/p", "--address", address, "-o", "yaml"))
    assert workload_of_pods["records"][0]["node"] == "n1"


def test_run_and_address_exclude_each_other() -> None:
    assert "wanted --run DIR or --address" in refusal_text("why", "p", "--node", "n")
    message = refusal_text("why", "p", "--run", "x", "--address", "127.0.0.1:1")
    assert "wanted either --run DIR or --address" in message
    assert "--dry-run: wanted --address" in refusal_text("why", "p", "--run", "x", "--dry-run")
    assert "does `bayplan run` serve there" in refusal_text("why", "p", "--address", "127.0.0.1:1")


# ---- running scheduler ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("127.0.0.1:10259", "http://127.0.0.1:10259"),
        ("https://host:1/", "https://host:1"),
        ("[::1]:9", "http://[::1]:9"),
    ],
)
def test_an_address_has_short_forms(text: str, url: str) -> None:
    assert address_of(text, "", "").url == url


@pytest.mark.parametrize("text", ["host", "ftp://host:1", "host:port", "http://:1", "host:99999"])
def test_an_invalid_address_is_refused(text: str) -> None:
    with pytest.raises(NotAnsweredError, match="wanted HOST:PORT"):
        address_of(text, "", "")


class TokenRequired:
    async def denial(
        self, path: str, authorization: str, owner: Any, peer: str = ""
    ) -> Denial | None:
        return None if authorization == "Bearer t" else Denial(401, "Unauthorized: no token")


def fetched_history(
    make: Callable[[int], Address], *, tls: bool = False, access: Any = None
) -> Any:
    async def main() -> Any:
        endpoints = Endpoints(sources(), access)
        context = self_signed_context("127.0.0.1", 1_767_225_600.0) if tls else None
        port = await endpoints.start("127.0.0.1", 0, context)
        try:
            return await history_from(make(port), "a/p")
        finally:
            await endpoints.stop()

    return asyncio.run(main())


def test_records_are_fetched_over_http_and_https() -> None:
    for scheme, tls in (("http", False), ("https", True)):
        answer = fetched_history(lambda port, s=scheme: Address(f"{s}://127.0.0.1:{port}"), tls=tls)
        assert answer.records == (BOUND,)


def test_the_certificate_is_verified_with_the_ca_file(tmp_path: Path) -> None:
    other = tmp_path / "ca.pem"
    other.write_text("no certificate")
    with pytest.raises(NotAnsweredError):
        fetched_history(
            lambda port: Address(f"https://127.0.0.1:{port}", ca_file=str(other)), tls=True
        )


def test_a_token_is_sent_and_a_missing_token_is_reported() -> None:
    answer = fetched_history(
        lambda port: Address(f"http://127.0.0.1:{port}", "t"), access=TokenRequired()
    )
    assert answer.records == (BOUND,)
    with pytest.raises(NotAnsweredError, match=r"HTTP 401: Unauthorized.*--token-file"):
        fetched_history(lambda port: Address(f"http://127.0.0.1:{port}"), access=TokenRequired())


def test_an_answer_has_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bayplan.cli.remote_history.ANSWER_BYTES_MAX", 16)
    with pytest.raises(NotAnsweredError, match="the answer is larger than"):
        fetched_history(lambda port: Address(f"http://127.0.0.1:{port}"))


def test_an_unreachable_scheduler_is_reported_with_a_hint() -> None:
    with pytest.raises(NotAnsweredError, match="does `bayplan run` serve there"):
        asyncio.run(history_from(Address("http://127.0.0.1:1"), "a/p"))
    with pytest.raises(NotAnsweredError, match="HTTP or HTTPS"):
        fetched_history(lambda port: Address(f"http://127.0.0.1:{port}"), tls=True)
