"""Objects as `kubectl get -o yaml` prints them, with what the server and controllers add.

Most of it is nothing that a scheduler reads. It is there because dumps of real clusters have it.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from bayplan.rng import Stream

Content = dict[str, Any]

CREATED = "2026-03-0{day}T{hour:02}:{minute:02}:07Z"
#: The letters of generated suffixes (apimachinery, util/rand).
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


class Maker:
    """Makes objects of one cluster; equal streams give equal objects."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self._version = 1000
        self._suffixes: set[str] = set()

    def chance(self, share: float) -> bool:
        return self.stream.random() < share

    def suffix(self, length: int = 5) -> str:
        """Another one each time: an API server refuses a name that is there already."""
        while (suffix := "".join(self.stream.choice(_LETTERS) for _ in range(length))) in (
            self._suffixes
        ):
            pass
        self._suffixes.add(suffix)
        return suffix

    def uid(self) -> str:
        digits = f"{self.stream.getrandbits(128):032x}"
        return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))

    def time(self) -> str:
        draw = self.stream.randrange
        return CREATED.format(day=draw(1, 10), hour=draw(24), minute=draw(60)).replace(
            "010T", "10T"
        )

    def make(self, kind: str, name: str, namespace: str = "", **parts: Any) -> Content:
        """An object; ``kind`` as "apps/v1 Deployment". ``labels``, ``annotations``, ``owner``,
        ``finalizers`` and ``generate_name`` are keywords; all other parts stand at the top."""
        api_version, _, bare = kind.rpartition(" ")
        self._version += self.stream.randrange(1, 50)
        meta: Content = {
            "creationTimestamp": self.time(),
            "name": name,
            "resourceVersion": str(self._version),
            "uid": self.uid(),
        }
        if namespace:
            meta["namespace"] = namespace
        for field in ("labels", "annotations", "finalizers"):
            if parts.get(field):
                meta[field] = parts.pop(field)
            parts.pop(field, None)
        if "generate_name" in parts:
            meta["generateName"] = parts.pop("generate_name")
        owner = parts.pop("owner", None)
        if owner is not None:
            meta["ownerReferences"] = [reference(owner)]
        meta["managedFields"] = self._managed_fields(api_version, parts)
        return {"apiVersion": api_version, "kind": bare, "metadata": meta, **parts}

    def _managed_fields(self, api_version: str, parts: Iterable[str]) -> list[Content]:
        manager = self.stream.choice(
            ("kubectl-client-side-apply", "kube-controller-manager", "helm")
        )
        fields = {f"f:{part}": {".": {}} for part in parts}
        return [
            {
                "apiVersion": api_version,
                "fieldsType": "FieldsV1",
                "fieldsV1": fields,
                "manager": manager,
                "operation": "Update",
                "time": self.time(),
            }
        ]


def reference(owner: Content) -> Content:
    """A reference to the controller that owns an object."""
    return {
        "apiVersion": owner["apiVersion"],
        "blockOwnerDeletion": True,
        "controller": True,
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
    }


def container(name: str, cpu_milli: int, memory_mib: int, **fields: Any) -> Content:
    """A container whose memory limit is twice its request; 0: without requests."""
    resources: Content = {}
    if cpu_milli:
        resources = {
            "limits": {"memory": f"{2 * memory_mib}Mi"},
            "requests": {"cpu": f"{cpu_milli}m", "memory": f"{memory_mib}Mi"},
        }
    more_limits = fields.pop("limits", {})
    if more_limits:
        resources = {
            "limits": {**resources.get("limits", {}), **more_limits},
            "requests": {**resources.get("requests", {}), **more_limits},
        }
    return {
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "LOG_LEVEL", "value": "info"},
        ],
        "image": f"registry.example.com/{name}:v1.2.3",
        "imagePullPolicy": "IfNotPresent",
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "http", "scheme": "HTTP"}},
        "name": name,
        "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
        "resources": resources,
        "securityContext": {"allowPrivilegeEscalation": False},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        **fields,
    }


def template_spec(containers: Sequence[Content], **fields: Any) -> Content:
    """The spec of a pod template, with the server's defaults."""
    return {
        "containers": list(containers),
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
        **fields,
    }


_SECONDS_TOLERATED = 300


def pod_spec(maker: Maker, template: Content, node: str) -> Content:
    """The spec of a stored pod of a template, after admission; ``node``: "" if it waits."""
    access = f"kube-api-access-{maker.suffix()}"
    mount = {
        "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
        "name": access,
        "readOnly": True,
    }
    containers = [
        {**each, "volumeMounts": [*each.get("volumeMounts", ()), mount]}
        for each in template["containers"]
    ]
    unready = [
        {
            "effect": "NoExecute",
            "key": f"node.kubernetes.io/{key}",
            "operator": "Exists",
            "tolerationSeconds": _SECONDS_TOLERATED,
        }
        for key in ("not-ready", "unreachable")
    ]
    spec: Content = {
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
        "priority": 0,
        "serviceAccount": "default",
        "serviceAccountName": "default",
        **template,
        "containers": containers,
        "tolerations": [*template.get("tolerations", ()), *unready],
        "volumes": [*template.get("volumes", ()), _api_access(access)],
    }
    return {**spec, "nodeName": node} if node else spec


def _api_access(name: str) -> Content:
    sources: list[Content] = [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"items": [{"key": "ca.crt", "path": "ca.crt"}], "name": "kube-root-ca.crt"}},
        {
            "downwardAPI": {
                "items": [
                    {
                        "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                        "path": "namespace",
                    }
                ]
            }
        },
    ]
    return {"name": name, "projected": {"defaultMode": 420, "sources": sources}}


def pod_status(maker: Maker, spec: Content, phase: str) -> Content:
    """The status of a pod with a node; see `waiting_status` for one without."""
    time = maker.time()
    is_ready = "True" if phase == "Running" else "False"
    types = (("Initialized", "True"), ("Ready", is_ready), ("ContainersReady", is_ready))
    conditions = [
        {"lastProbeTime": None, "lastTransitionTime": time, "status": status, "type": name}
        for name, status in (*types, ("PodScheduled", "True"))
    ]
    statuses = [
        {
            "containerID": f"containerd://{maker.stream.getrandbits(64):016x}",
            "image": each["image"],
            "lastState": {},
            "name": each["name"],
            "ready": phase == "Running",
            "restartCount": 0,
            "started": phase == "Running",
            "state": {"running": {"startedAt": time}},
        }
        for each in spec["containers"]
    ]
    return {
        "conditions": conditions,
        "containerStatuses": statuses,
        "hostIP": "10.0.0.1",
        "phase": phase,
        "podIP": "10.1.2.3",
        "podIPs": [{"ip": "10.1.2.3"}],
        "qosClass": "Burstable",
        "startTime": time,
    }


def waiting_status(message: str) -> Content:
    condition = {
        "lastProbeTime": None,
        "lastTransitionTime": "2026-03-09T00:00:00Z",
        "message": message,
        "reason": "Unschedulable",
        "status": "False",
        "type": "PodScheduled",
    }
    return {"conditions": [condition], "phase": "Pending", "qosClass": "Burstable"}


def evicted_status() -> Content:
    return {
        "message": "The node was low on resource: ephemeral-storage.",
        "phase": "Failed",
        "reason": "Evicted",
        "startTime": "2026-03-08T00:00:00Z",
    }
