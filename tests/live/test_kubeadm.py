"""kubeadm's static pod manifest with image and command replaced: its files, arguments and probes.

Upstream: cmd/kubeadm/app/phases/controlplane/manifests.go.
"""

import base64
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import KUBEADM_ARGUMENTS
from tests.live.control_plane import ControlPlane
from tests.live.processes import SchedulerProcess, free_port, replicas
from tests.live.run_world import LEADS, Cluster, get, run_replicas, wait_until_logged

pytestmark = pytest.mark.timeout(400)

USER = "system:kube-scheduler"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"


def laid_out(control_plane: ControlPlane, folder: Path) -> tuple[str, ...]:
    """Write scheduler.conf. Returns the arguments with /etc/kubernetes moved into ``folder``."""
    etc = folder / "etc" / "kubernetes"
    etc.mkdir(parents=True)
    certificate, key = (
        base64.b64encode(path.read_bytes()).decode()
        for path in control_plane.client_certificate(USER)
    )
    user = {"client-certificate-data": certificate, "client-key-data": key}
    written = Path(control_plane.kubeconfig_with("kubeadm", user))
    text = written.read_text().replace("certs/apiserver.crt", str(control_plane.authority))
    (etc / "scheduler.conf").write_text(text)
    return tuple(each.replace("/etc/kubernetes", str(etc)) for each in KUBEADM_ARGUMENTS)


def test_kubeadms_manifest_runs_with_the_rights_of_kube_scheduler(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    port = free_port()
    arguments = ["run", *laid_out(control_plane, tmp_path), f"--secure-port={port}"]
    one = SchedulerProcess("kubeadm", arguments, tmp_path / "log")

    async def scene(cluster: Cluster) -> None:
        await wait_until_logged(one, LEADS)
        await cluster.add_pods("default-scheduler", "p", "q")
        await cluster.until_bound("p", "q")
        lease: dict[str, Any] = await cluster.client.get(LEASE)
        assert lease["spec"]["holderIdentity"]
        url = f"https://127.0.0.1:{port}"
        for probe in ("livez", "readyz"):
            assert await get(f"{url}/{probe}") == (200, "ok")
        assert (await get(f"{url}/metrics"))[0] == 401
        # The scheduler has read the cluster's client CA.
        certificate = control_plane.client_certificate("stranger")
        status, text = await get(f"{url}/metrics", certificate=certificate)
        assert (status, text) == (403, 'Forbidden: User "stranger" cannot get path "/metrics"\n')
        for trouble in ("Rights are missing", "forbidden", "not accepted"):
            assert trouble not in one.output
        assert one.end() == 0
        assert not (await cluster.client.get(LEASE))["spec"].get("holderIdentity")

    with replicas(one):
        run_replicas(control_plane, "kubeadm", scene)
