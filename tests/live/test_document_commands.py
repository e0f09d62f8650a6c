"""The commands of the documents that need a cluster, in the order of the document.

A document that has one is followed from its beginning to its end by a reader whose kubectl uses
this API server: `~/.kube/config` leads to it. In the cluster are nodes n1 to n9; a StatefulSet
`web`, three pods of which run while web-3 and a pod `waiting` fit nowhere; a Deployment `web`, and
another one in the namespace `shop`. `workload.yaml` has pods that are not in the cluster.
`tests/documents/trials.py` says what each command is run with and what it prints.
"""

import asyncio
import contextlib
import json
import re
import shlex
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bayplan.adapters.live.client import ClientOptions, open_client
from tests.cli.command_line import write_objects
from tests.deploy.rendering import KUBERNETES, documents, helm
from tests.documents.reading import DOCUMENTS, ROOT, Excerpt, commands_of, excerpts_of
from tests.documents.sandbox import Sandbox, page, workload
from tests.documents.trials import Trial, program_of, ways_of
from tests.live.beside import Cluster
from tests.live.control_plane import ControlPlane, token
from tests.live.kubelet import ready_node
from tests.live.mirror import Object
from tests.live.processes import SchedulerProcess, apply, free_port, replicas
from tests.live.world import small_pod

pytestmark = pytest.mark.timeout(400)

_WAYS = {"cluster", "cluster server", "chart"}
WITH_A_CLUSTER = [
    path for path in DOCUMENTS if any(_WAYS & {*ways_of(one)} for one in commands_of(path))
]
#: Only for installing, or about what is installed.
_NOT_FOR_TEMPLATES = {"--create-namespace", "--reuse-values"}
_NO_FIT = '"Unable to schedule pod; no fit; waiting"'
_PODS = "/api/v1/namespaces/default/pods"


@pytest.mark.parametrize("path", WITH_A_CLUSTER)
def test_a_document_works_as_written_beside_a_cluster(
    path: str, control_plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(_fill(control_plane))
    # Helm is looked for in the home of whoever runs the tests.
    sandbox = ClusterSandbox(tmp_path, control_plane, helm())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for each in excerpts_of((ROOT / path).read_text(encoding="utf-8")):
        if each.kind not in ("console", "mention"):
            sandbox.try_out(each)
    expected = [one.command for one in commands_of(path) if _WAYS & {*ways_of(one)}]
    assert [command for command in expected if command not in sandbox.ran] == []


class ClusterSandbox(Sandbox):
    """The folder of a reader who has a cluster."""

    has_cluster = True

    def __init__(self, folder: Path, control_plane: ControlPlane, helm_program: str) -> None:
        super().__init__(folder)
        self._helm = helm_program
        self._admin = control_plane.kubeconfig("admin")
        write_objects(folder / "workload.yaml", workload("Deployment", 2, "batch"))
        (folder / "token").write_text(token("admin"))
        _write_kubeconfig(folder / ".kube" / "config", Path(self._admin))

    def run(self, excerpt: Excerpt, trial: Trial, **values: str) -> None:
        if not trial.beside:
            super().run(excerpt, trial, **values)
            return
        with self._scheduler(has_tls=trial.beside == "scheduler with TLS") as address:
            super().run(excerpt, trial, address=address, **values)

    @contextlib.contextmanager
    def _scheduler(self, *, has_tls: bool) -> Iterator[str]:
        """One that has tried the waiting pods. Yields its address."""
        port = free_port()
        options = ["--bind-address=0.0.0.0"] if has_tls else []
        arguments = ["run", f"--secure-port={port}", "--leader-elect=false", *options]
        process = SchedulerProcess("run", arguments, self.folder / "scheduler-log")
        with replicas(process):
            for name in ("web-3", "waiting"):
                process.wait_until_printed(f'{_NO_FIT} pod="default/{name}"')
            yield f"127.0.0.1:{port}"
            assert process.end() == 0, process.output

    def until_answered(self, process: SchedulerProcess, url: str) -> None:
        """A shadow answers with a decision that it has compared."""
        if process.name != "shadow":
            super().until_answered(process, url)
            return
        binder = Binder(self._admin)
        compared = re.compile(r"^bayplan_shadow_decisions_total\{.*\} [1-9]", re.MULTILINE)

        def has_compared() -> bool:
            text = page(url)
            if text is None:
                return False
            binder.bind_one()
            return bool(compared.search(text))

        process.wait_until(has_compared, "compared a decision")

    def _other(self, excerpt: Excerpt) -> None:
        super()._other(excerpt)
        if program_of(excerpt) == "helm":
            self._render(excerpt)

    def _render(self, excerpt: Excerpt) -> None:
        """The chart with the values of `helm install` or `helm upgrade`, by `helm template`."""
        _, verb, *words = shlex.split(excerpt.command)
        assert verb in ("install", "upgrade"), excerpt.text
        words = [word for word in words if word not in _NOT_FOR_TEMPLATES]
        command = [self._helm, "template", "--kube-version", KUBERNETES, *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"line {excerpt.line}: {excerpt.text}\n{done.stderr}"
        kinds = {found["kind"] for found in documents(done.stdout)}
        assert {"Deployment", "ConfigMap", "ClusterRole"} <= kinds
        self.ran.append(excerpt.command)


class Binder:
    """What the scheduler of the cluster does: it binds a pod."""

    def __init__(self, kubeconfig: str) -> None:
        self._kubeconfig = kubeconfig

    def bind_one(self) -> None:
        asyncio.run(self._bind_one())

    async def _bind_one(self) -> None:
        content = small_pod("")
        content["metadata"] = {"generateName": "shadowed-"}
        async with _open(self._kubeconfig) as cluster:
            created = json.loads(await cluster.client.request("POST", _PODS, content))
            name = created["metadata"]["name"]
            binding = {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": name},
                "target": {"apiVersion": "v1", "kind": "Node", "name": "n9"},
            }
            await cluster.client.request("POST", f"{_PODS}/{name}/binding", binding)


# ---- the cluster ----------------------------------------------------------------------------


@asynccontextmanager
async def _open(kubeconfig: str) -> AsyncIterator[Cluster]:
    async with open_client(kubeconfig, ClientOptions(qps=-1)) as client:
        yield Cluster(client)


async def _fill(control_plane: ControlPlane) -> None:
    """Nothing but what the documents speak of."""
    async with _open(control_plane.kubeconfig("admin")) as cluster:
        await cluster.empty()
        shop = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
        await apply(cluster.client, [shop])
        for number in range(1, 10):
            await cluster.create(ready_node(f"n{number}", cpu=4, zone=f"z{number % 2}"))
        owner = await _created(cluster, workload("StatefulSet", 4))
        for number in range(3):
            await cluster.create(_pod(f"web-{number}", owner, cpu="1", node_name=f"n{number + 1}"))
        await cluster.create(_pod("web-3", owner, cpu="100"))
        await cluster.create(_pod("waiting", None, cpu="100"))
        for namespace in ("default", "shop"):
            await _deploy(cluster, namespace)


async def _deploy(cluster: Cluster, namespace: str) -> None:
    """A Deployment `web` with its ReplicaSet and a pod that runs, as its controllers make them."""
    deployment = workload("Deployment", 1)
    deployment["metadata"]["namespace"] = namespace
    replica_set = {**deployment, "kind": "ReplicaSet"}
    owner = await _created(cluster, deployment)
    meta = {"name": "web-6d4b", "namespace": namespace, "ownerReferences": [owner]}
    owner = await _created(cluster, {**replica_set, "metadata": meta})
    one = _pod("web-6d4b-x", owner, cpu="1", node_name="n4")
    labels = {"app": "deployment-web", "pod-template-hash": "6d4b"}
    one["metadata"] |= {"namespace": namespace, "labels": labels}
    await cluster.create(one)


async def _created(cluster: Cluster, controller: Object) -> Object:
    """Create a controller. Returns the reference by which its pods name it."""
    await cluster.create(controller)
    meta = (await cluster.client.get(await cluster.path(controller)))["metadata"]
    kind = {key: controller[key] for key in ("apiVersion", "kind")}
    return {**kind, "name": meta["name"], "uid": meta["uid"], "controller": True}


def _pod(name: str, owner: Object | None, *, cpu: str, node_name: str = "") -> Object:
    """With a node, it runs there."""
    content = small_pod(name, cpu=cpu, labels={"app": "statefulset-web"} if owner else {})
    content["metadata"]["namespace"] = "default"
    if owner:
        content["metadata"]["ownerReferences"] = [owner]
    if node_name:
        content["spec"]["nodeName"] = node_name
        ready = {"type": "Ready", "status": "True"}
        content["status"] = {"phase": "Running", "conditions": [ready]}
    return content


def _write_kubeconfig(path: Path, admin: Path) -> None:
    """That of kubectl, with a second context."""
    content: Any = json.loads(admin.read_text())
    (first,) = content["contexts"]
    content["contexts"].append({**first, "name": "staging"})
    cluster = content["clusters"][0]["cluster"]
    authority = admin.parent / cluster["certificate-authority"]
    cluster["certificate-authority"] = str(authority)
    path.parent.mkdir()
    path.touch(mode=0o600)
    path.write_text(json.dumps(content))
