"""A real etcd and a real kube-apiserver on loopback, in a folder of their own.

RBAC is on. Users are known by their tokens: `admin` may do everything, `scheduler` what its
ClusterRole allows, `stranger` nothing. Every binding that reaches the server is in its audit log,
which says what the scheduler really sent.
"""

import base64
import collections
import contextlib
import itertools
import json
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

LOOPBACK = "127.0.0.1"
READY_SECONDS = 120.0
POLL_SECONDS = 0.05
#: etcd accepts requests of at most 1.5 MiB with at most 128 operations.
PUTS_PER_TRANSACTION = 64
USERS = {"admin": "system:masters", "scheduler": "", "stranger": ""}

#: Without controllers, no ServiceAccounts are created and no taints are removed.
DISABLED_ADMISSION = "ServiceAccount,TaintNodesByCondition"

#: The audit log has the bindings.
AUDIT_RULES = ({"level": "Metadata", "resources": [{"group": "", "resources": ["pods/binding"]}]},)


class ControlPlane:
    """An etcd and an API server. Call `start` first and `stop` last."""

    def __init__(
        self,
        binaries: Path,
        *flags: str,
        disabled_admission: str = DISABLED_ADMISSION,
        audit_rules: Sequence[Mapping[str, Any]] = AUDIT_RULES,
    ) -> None:
        """``flags``: further flags of the API server; ``audit_rules``: only requests that match a
        rule are logged."""
        self._binaries = binaries
        self._disabled_admission = disabled_admission
        self._flags = flags
        self._audit_rules = audit_rules
        self._folder = Path(tempfile.mkdtemp(prefix="bayplan-live-"))
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._etcd_port, self._peer_port, self.port = (_free_port() for _ in range(3))

    # ---- life -------------------------------------------------------------------------------

    def start(self) -> None:
        self._write("tokens.csv", "".join(map(_token_line, USERS)))
        self._write("audit.json", json.dumps(self._audit_policy()))
        self._openssl("genrsa -out sa.key 2048")
        self._openssl("req -x509 -nodes -newkey rsa:2048 -keyout ca.key -out ca.crt -subj /CN=ca")
        self._start_etcd()
        self.start_api_server()

    def stop(self) -> None:
        for process in reversed(self._processes.values()):
            process.kill()
            process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def kill_api_server(self) -> None:
        """Kill the process without a graceful shutdown."""
        process = self._processes.pop("kube-apiserver")
        process.kill()
        process.wait()

    @contextlib.contextmanager
    def mute_api_server(self) -> Iterator[None]:
        """Pause the API server: its kernel accepts connections, and no request gets an answer."""
        with self._paused("kube-apiserver"):
            yield

    @contextlib.contextmanager
    def pause_etcd(self) -> Iterator[None]:
        """Pause etcd: the API server runs, and can neither read nor write."""
        with self._paused("etcd"):
            yield

    @contextlib.contextmanager
    def _paused(self, name: str) -> Iterator[None]:
        process = self._processes[name]
        process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            process.send_signal(signal.SIGCONT)

    def start_api_server(self) -> None:
        """Start it at the same address with the same certificate. Returns when it is ready."""
        folder = self._folder
        self.spawn(
            "kube-apiserver",
            f"--etcd-servers=http://{LOOPBACK}:{self._etcd_port}",
            f"--bind-address={LOOPBACK}",
            f"--advertise-address={LOOPBACK}",
            f"--secure-port={self.port}",
            "--endpoint-reconciler-type=none",
            f"--cert-dir={folder / 'certs'}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={folder / 'sa.key'}",
            f"--service-account-signing-key-file={folder / 'sa.key'}",
            f"--token-auth-file={folder / 'tokens.csv'}",
            f"--client-ca-file={folder / 'ca.crt'}",
            "--authorization-mode=RBAC",
            f"--disable-admission-plugins={self._disabled_admission}",
            f"--audit-policy-file={folder / 'audit.json'}",
            f"--audit-log-path={folder / 'audit.log'}",
            *self._flags,
        )
        self._wait_ready("kube-apiserver", f"https://{LOOPBACK}:{self.port}/readyz")

    def _audit_policy(self) -> dict[str, Any]:
        return {
            "apiVersion": "audit.k8s.io/v1",
            "kind": "Policy",
            "omitStages": ["RequestReceived"],
            "rules": [*self._audit_rules, {"level": "None"}],
        }

    def _openssl(self, command: str) -> None:
        subprocess.run(
            ["openssl", *command.split()], cwd=self._folder, check=True, capture_output=True
        )

    def _start_etcd(self) -> None:
        url, peer = f"http://{LOOPBACK}:{self._etcd_port}", f"http://{LOOPBACK}:{self._peer_port}"
        self.spawn(
            "etcd",
            f"--data-dir={self._folder / 'etcd'}",
            "--unsafe-no-fsync",
            f"--listen-client-urls={url}",
            f"--advertise-client-urls={url}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--log-level=warn",
        )
        self._wait_ready("etcd", f"{url}/health")

    def spawn(self, name: str, *arguments: str) -> None:
        """Start one of the programs in the control plane's folder; `stop` ends it, too."""
        with (self._folder / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [self._binaries / name, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
            )

    def _wait_ready(self, name: str, url: str) -> None:
        """Raise AssertionError with the log if the program ends."""
        deadline = time.monotonic() + READY_SECONDS
        while not _answers(url):
            log = (self._folder / f"{name}.log").read_text(errors="replace")
            assert self._processes[name].poll() is None, f"{name} ended:\n{log[-3000:]}"
            assert time.monotonic() < deadline, f"{name} does not get ready:\n{log[-3000:]}"
            time.sleep(POLL_SECONDS)

    # ---- using it ---------------------------------------------------------------------------

    def kubeconfig(self, user: str, server: str = "") -> str:
        """The path of a kubeconfig for a user; ``server``: another URL of the API server."""
        return self.kubeconfig_with(user, {"token": token(user)}, server)

    def kubeconfig_with(self, name: str, user: dict[str, Any], server: str = "") -> str:
        """The path of a kubeconfig with this user entry; ``server`` as in `kubeconfig`."""
        server = server or f"https://{LOOPBACK}:{self.port}"
        cluster = {"server": server, "certificate-authority": "certs/apiserver.crt"}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "live", "cluster": cluster}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": name, "context": {"cluster": "live", "user": name}}],
            "current-context": name,
        }
        ending = server.rpartition(":")[2]
        return self._write(f"kubeconfig-{name}-{ending}", json.dumps(content))

    def client_certificate(self, user: str) -> tuple[Path, Path]:
        """A client certificate for the user, and its key."""
        self._openssl(
            f"req -nodes -newkey rsa:2048 -keyout {user}.key -out {user}.csr -subj /CN={user}"
        )
        self._openssl(
            f"x509 -req -in {user}.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out {user}.crt"
        )
        return self._folder / f"{user}.crt", self._folder / f"{user}.key"

    @property
    def authority(self) -> Path:
        """The CA that verifies the certificate of this API server."""
        return self._folder / "certs" / "apiserver.crt"

    @property
    def client_authority(self) -> Path:
        """The CA of client certificates."""
        return self._folder / "ca.crt"

    def client_ssl_context(self) -> ssl.SSLContext:
        """A TLS context for a client that trusts this API server."""
        return ssl.create_default_context(cafile=str(self.authority))

    def compact_etcd(self) -> None:
        """Delete all revisions except the newest."""
        status = self._etcd("kv/range", {"key": "AA=="})
        revision = status["header"]["revision"]
        self._etcd("kv/compaction", {"revision": revision, "physical": True})

    def store(self, objects: Iterable[tuple[str, bytes]]) -> None:
        """Write objects into etcd under their keys, as JSON, past the API server."""
        puts = ({"key": _base64(key.encode()), "value": _base64(value)} for key, value in objects)
        for chunk in iter(lambda: list(itertools.islice(puts, PUTS_PER_TRANSACTION)), []):
            self._etcd("kv/txn", {"success": [{"requestPut": each} for each in chunk]})

    def _etcd(self, call: str, content: dict[str, Any]) -> dict[str, Any]:
        url = f"http://{LOOPBACK}:{self._etcd_port}/v3/{call}"
        request = urllib.request.Request(url, data=json.dumps(content).encode(), method="POST")
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def request(
        self, method: str, path: str, content: Any = None, media_type: str = "application/json"
    ) -> tuple[int, Any]:
        """A request of an administrator: the code and the content of the answer. Raises OSError."""
        data = None if content is None else json.dumps(content).encode()
        headers = {"Authorization": f"Bearer {token('admin')}", "Content-Type": media_type}
        url = f"https://{LOOPBACK}:{self.port}{path}"
        request = urllib.request.Request(url, data, headers, method=method)
        trust = ssl.create_default_context(cafile=str(self.authority))
        try:
            with urllib.request.urlopen(request, timeout=30, context=trust) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as problem:
            return problem.code, json.load(problem)

    def bindings(self, namespace: str) -> collections.Counter[tuple[str, int]]:
        """The number of binding requests per (pod, HTTP code) in a namespace."""
        counts: collections.Counter[tuple[str, int]] = collections.Counter()
        for entry in self.audited():
            if entry["objectRef"].get("namespace") == namespace:
                counts[entry["objectRef"]["name"], entry["responseStatus"]["code"]] += 1
        return counts

    def audited(self) -> list[dict[str, Any]]:
        """The entries of the audit log so far."""
        lines = (self._folder / "audit.log").read_text().splitlines()
        return [json.loads(line) for line in lines]

    @property
    def folder(self) -> Path:
        """The folder with keys, certificates and a log for each program."""
        return self._folder

    def ended(self) -> dict[str, int]:
        """The programs that have ended by themselves, with their exit codes."""
        codes = {name: process.poll() for name, process in self._processes.items()}
        return {name: code for name, code in codes.items() if code is not None}

    def _write(self, name: str, text: str) -> str:
        path = self._folder / name
        path.touch(mode=0o600)
        path.write_text(text)
        return str(path)


def token(user: str) -> str:
    return f"{user}-token"


def _token_line(user: str) -> str:
    return f'{token(user)},{user},{user},"{USERS[user]}"\n'


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _free_port() -> int:
    with socket.socket() as opened:
        opened.bind((LOOPBACK, 0))
        return opened.getsockname()[1]


def _answers(url: str) -> bool:
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token('admin')}"})
    unchecked = ssl.create_default_context()
    unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE
    with (
        contextlib.suppress(OSError),  # HTTPError and URLError are subclasses of OSError
        urllib.request.urlopen(request, timeout=5, context=unchecked) as answer,
    ):
        return answer.status == 200
    return False
