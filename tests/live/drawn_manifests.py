"""Changes of fields of a manifest that decide no placement: containers, volumes, metadata.

Each value is a mistake that people make, or its valid neighbour.
"""

from typing import Any

Changes = dict[str, tuple[Any, ...]]

_HTTP = {"httpGet": {"path": "/", "port": 80}}
_RUN = {"exec": {"command": ["a"]}}
_PROBES = (
    {},
    _HTTP,
    _RUN,
    {"initialDelaySeconds": 5},
    {**_HTTP, **_RUN},
    *({**_HTTP, "periodSeconds": value} for value in (-1, 0, 5, "5")),
    *({**_HTTP, "successThreshold": value} for value in (-1, 0, 1, 2)),
    *({**_HTTP, "terminationGracePeriodSeconds": value} for value in (0, 5)),
    *({"httpGet": {"port": value}} for value in (0, 70000, "80", "http", "Http", "a--b", "")),
    {"httpGet": {"path": "/"}},
    *({"httpGet": {"port": 80, "scheme": value}} for value in ("http", "HTTPS")),
    *({"exec": {"command": value}} for value in ([], "ls", ["ls", 5])),
    {"tcpSocket": {}},
    {"tcpSocket": {"port": "8080"}},
    {"grpc": {"port": 0}},
    {"grpc": {"port": "a"}},
    {"grpc": {"port": 50}},
)
_KEY = {"name": "m", "key": "k"}
_SOURCES = (
    {},
    *(
        {"fieldRef": {"fieldPath": value}}
        for value in (
            "metadata.name",
            "metadata.labels['a']",
            "metadata.labels['a b']",
            "metadata.labels",
            "status.podIp",
            "spec.host",
            "spec.hostname",
            "status.phase",
            "",
        )
    ),
    *({"resourceFieldRef": {"resource": value}} for value in ("limits.cpu", "cpu", "")),
    *({"configMapKeyRef": value} for value in (_KEY, {"name": "m"}, {"key": "k"}, {})),
    *({"secretKeyRef": value} for value in (_KEY, {**_KEY, "name": "Bad_"}, "s")),
    {"configMapKeyRef": _KEY, "secretKeyRef": _KEY},
)
_VARIABLES = (
    *([{"name": name, "value": "x"}] for name in ("", "A", "a b", "A=B", "1A", "é")),
    *([{"name": "A", "value": value}] for value in (5, True, ["x"], "")),
    [{"value": "x"}],
    {"A": "b"},
    ["A=b"],
    *([{"name": "A", "valueFrom": source}] for source in _SOURCES),
    [{"name": "A", "value": "x", "valueFrom": {"secretKeyRef": _KEY}}],
)
_NAMED = {"secretRef": {"name": "m"}}
_ENV_FROM = (
    [{}],
    [_NAMED],
    [{"configMapRef": {}}],
    [{**_NAMED, "configMapRef": {"name": "m"}}],
    [{**_NAMED, "prefix": "a="}],
    _NAMED,
)
_PORT_NAMES = ("http", "HTTP", "80", "a-very-long-port-name", "a--b", "-a", "a_b", "")
_PORTS = (
    *([{"containerPort": 80, "name": name}] for name in _PORT_NAMES),
    *([{"containerPort": number}] for number in (0, -1, 70000, "80", 80)),
    *([{"containerPort": 80, "protocol": value}] for value in ("tcp", "UDP")),
    [{"containerPort": 80, "name": "a"}, {"containerPort": 81, "name": "a"}],
    [80],
    {"containerPort": 80},
)
_SECRET = {"secretName": "s"}
_SOURCES_OF_VOLUMES = (
    *({"secret": value} for value in ({}, _SECRET, {"name": "s"}, "s")),
    *({"secret": {**_SECRET, "defaultMode": value}} for value in (0o777, 0o1000, "0644")),
    *(
        {"secret": {**_SECRET, "items": [value]}}
        for value in ({}, {"key": "a", "path": "b"}, {"key": "a", "path": "/b"}, {"key": "a"})
    ),
    *({"configMap": value} for value in ({}, {"name": "m"}, {"secretName": "m"})),
    *({"hostPath": value} for value in ({}, {"path": "/a"}, {"path": "/a", "type": "Foo"}, "/a")),
    *({"emptyDir": {"sizeLimit": value}} for value in ("1Gi", "x", 5, "1GB")),
    *({"nfs": value} for value in ({}, {"server": "s", "path": "/x"})),
    *({"csi": value} for value in ({}, {"driver": "d"})),
    {"persistentVolumeClaim": "c"},
    {"projected": {"sources": [{"secret": {}}]}},
    {"projected": {"sources": [{"secret": {"name": "s"}}]}},
    {"emptyDir": {}, "hostPath": {"path": "/a"}},
)
_MOUNT = {"name": "v", "mountPath": "/a"}
_INIT = {"name": "i", "image": "x"}
_IDS = (-1, 0, 5, "1000", 2**31)


def changes_of_pods(path: str) -> Changes:
    """Changes of the spec of a pod at ``path``, with one container and a volume v."""
    first = f"{path}.containers.0"
    return {
        **{f"{first}.{kind}Probe": _PROBES for kind in ("liveness", "readiness", "startup")},
        f"{first}.lifecycle": tuple({"preStop": each} for each in ({}, _RUN, {**_RUN, **_HTTP})),
        f"{first}.env": _VARIABLES,
        f"{first}.envFrom": _ENV_FROM,
        f"{first}.ports": _PORTS,
        f"{first}.command": ("sleep 5", ["sleep", "5"], ["sleep", 5], [True], {}),
        f"{first}.imagePullPolicy": ("always", "Always", "", True),
        f"{first}.terminationMessagePolicy": ("Foo", "File", ""),
        f"{first}.tty": ("true", True),
        f"{first}.securityContext": (
            *({field: value} for field in ("runAsUser", "runAsGroup") for value in _IDS),
            *({"runAsNonRoot": value} for value in ("true", True)),
            *({"seccompProfile": {"type": value}} for value in ("RuntimeDefault", "Foo", "")),
            *({"capabilities": {"drop": value}} for value in ("ALL", ["ALL"])),
            {"allowPrivilegeEscalation": False, "privileged": True},
            {"allowPrivilegeEscalation": False, "capabilities": {"add": ["CAP_SYS_ADMIN"]}},
        ),
        f"{first}.volumeMounts": (
            [_MOUNT] * 2,
            [{"name": "v"}],
            {**_MOUNT},
            *([{**_MOUNT, "subPath": value}] for value in ("x", "/x", "../x")),
        ),
        f"{path}.securityContext": (
            *({field: value} for field in ("runAsUser", "fsGroup") for value in _IDS),
            *({"fsGroupChangePolicy": value} for value in ("Foo", "Always")),
            {"supplementalGroups": 5},
        ),
        f"{path}.volumes": tuple([{"name": "v", **each}] for each in _SOURCES_OF_VOLUMES),
        f"{path}.initContainers": (
            [{**_INIT, "livenessProbe": _HTTP}],
            [{**_INIT, "lifecycle": {"preStop": _RUN}}],
            [{**_INIT, "restartPolicy": "Always", "livenessProbe": _HTTP}],
            {**_INIT},
        ),
        f"{path}.ephemeralContainers": ([_INIT], []),
        f"{path}.terminationGracePeriodSeconds": (-1, 0, "30"),
        f"{path}.dnsPolicy": ("None", "Default", "clusterFirst", ""),
        f"{path}.dnsConfig": ({}, {"options": [{"name": "ndots", "value": 2}]}, {"searches": "a"}),
        f"{path}.hostAliases": (
            [{}],
            [{"ip": "1.2.3.4", "hostnames": ["a"]}],
            [{"ip": "x", "hostnames": ["a"]}],
            [{"ip": "::1", "hostnames": ["A_"]}],
        ),
        f"{path}.hostNetwork": ("true", True),
        f"{path}.imagePullSecrets": (["x"], [{"name": "x"}], "x"),
        f"{path}.serviceAccountName": (5,),
    }


_OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "o", "uid": "u"}
META: Changes = {
    "metadata.ownerReferences": (
        [_OWNER],
        *([{**_OWNER, field: ""}] for field in _OWNER),
        [{**_OWNER, "controller": "true"}],
        [{**_OWNER, "controller": True}, {**_OWNER, "name": "p", "controller": True}],
        _OWNER,
    ),
    "metadata.labels": ({"a": 5}, {"a": True}, ["a"], {"a": ""}),
    "metadata.annotations": ({"a": 5}, {"a b": "c"}, {"a": "b c"}),
}
_CODES = {"operator": "In", "values": [1, 2]}
_RULE = {"action": "FailJob", "onExitCodes": _CODES}
FAILURE_RULES = (
    {},
    _RULE,
    {**_RULE, "action": "Foo"},
    {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
    {**_RULE, "onPodConditions": [{"type": "DisruptionTarget"}]},
    *({**_RULE, "onExitCodes": {**_CODES, "values": each}} for each in ([], [0], [2, 1], [1, 1])),
    {**_RULE, "onExitCodes": {"values": [1]}},
)
