"""The reports that KWOK writes in place of kubelets, as Stage objects of KWOK.

A node is Ready. A bound pod runs and is ready at once; a pod of a Job succeeds at once. A pod that
is being deleted goes at once, or at the end of its grace period if it has a preStop hook.
"""

import json
from typing import Any

Object = dict[str, Any]

_PRE_STOP_SECONDS = 30

_TRUE_CONDITIONS = """\
conditions:
{{ $now := Now }}
{{ range $type := list "Initialized" "PodReadyToStartContainers" "ContainersReady" "Ready" }}
- {type: {{ $type | Quote }}, status: "True", lastTransitionTime: {{ $now | Quote }}}
{{ end }}
"""
_ADDRESSES = """\
{{ with NodeIPsWith .spec.nodeName }}
hostIP: {{ index . 0 | Quote }}
hostIPs: [{ip: {{ index . 0 | Quote }}}]
{{ end }}
{{ $onHost := or .spec.hostNetwork false }}
{{ $uid := or .metadata.uid "" }}
{{ with PodIPsWith .spec.nodeName $onHost $uid (or .metadata.name "") (or .metadata.namespace "") }}
podIP: {{ index . 0 | Quote }}
podIPs: [{ip: {{ index . 0 | Quote }}}]
{{ end }}
"""
_ENDED = """\
{terminated: {exitCode: 0, reason: Completed, startedAt: {{ $now | Quote }}, \
finishedAt: {{ $now | Quote }}}}"""
_RUNNING = "{running: {startedAt: {{ $now | Quote }}}}"


def _containers(field: str, source: str, state: str, *, is_ready: bool) -> str:
    """The statuses of the containers of one list of the spec."""
    ready = str(is_ready).lower()
    return f"""\
{field}:
{{{{ range .spec.{source} }}}}
- name: {{{{ .name | Quote }}}}
  image: {{{{ .image | Quote }}}}
  imageID: {{{{ .image | Quote }}}}
  restartCount: 0
  ready: {ready}
  started: {ready}
  state: {state}
{{{{ end }}}}
"""


#: An init container with restartPolicy Always is a sidecar and continues to run.
_INIT_STATE = (
    '{{ if eq (or .restartPolicy "") "Always" }}' + _RUNNING + "{{ else }}" + _ENDED + ("{{ end }}")
)
_RUNS = (
    _TRUE_CONDITIONS
    + _containers("containerStatuses", "containers", _RUNNING, is_ready=True)
    + _containers("initContainerStatuses", "initContainers", _INIT_STATE, is_ready=True)
    + _ADDRESSES
    + "phase: Running\nstartTime: {{ $now | Quote }}\n"
)
_SUCCEEDED = (
    "{{ $now := Now }}\n"
    + _containers("containerStatuses", "containers", _ENDED, is_ready=False)
    + "phase: Succeeded\n"
)
_NODE_IS_READY = """\
{{ $now := Now }}
conditions:
{{ range NodeConditions }}
- type: {{ .type | Quote }}
  status: {{ .status | Quote }}
  reason: {{ .reason | Quote }}
  message: {{ .message | Quote }}
  lastHeartbeatTime: {{ $now | Quote }}
  lastTransitionTime: {{ $now | Quote }}
{{ end }}
"""


def stages() -> str:
    """The stages as a stream of documents. JSON is YAML."""
    is_deleted = _present(".metadata.deletionTimestamp")
    is_not_ready = _without('.status.conditions.[] | select( .type == "Ready" ) | .status', "True")
    # With a grace period of zero seconds the API server removes the pod by itself.
    is_due = _without(".metadata.deletionGracePeriodSeconds", "0")
    pre_stop = ".spec.containers.[].lifecycle.preStop"
    lives = _absent(".metadata.deletionTimestamp")
    after_grace: Object = {
        "durationMilliseconds": _PRE_STOP_SECONDS * 1000,
        "durationFrom": {"expressionFrom": ".metadata.deletionTimestamp"},
    }
    documents = (
        _stage("node-ready", "Node", [is_not_ready], {"statusTemplate": _NODE_IS_READY}),
        _stage(
            "pod-runs",
            "Pod",
            [lives, is_not_ready, _with(".status.phase", "Pending")],
            {"statusTemplate": _RUNS},
        ),
        _stage(
            "pod-of-a-job-succeeds",
            "Pod",
            [
                lives,
                _with(".status.phase", "Running"),
                _with(".metadata.ownerReferences.[].kind", "Job"),
            ],
            {"statusTemplate": _SUCCEEDED},
        ),
        _stage("pod-goes", "Pod", [is_deleted, is_due, _absent(pre_stop)], {"delete": True}),
        _stage(
            "pod-goes-after-its-hook",
            "Pod",
            [is_deleted, is_due, _present(pre_stop)],
            {"delete": True},
            after_grace,
        ),
    )
    return "\n---\n".join(map(json.dumps, documents))


def _stage(
    name: str, kind: str, expressions: list[Object], result: Object, delay: Object | None = None
) -> Object:
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": kind},
            "selector": {"matchExpressions": expressions},
            "next": result,
            **({"delay": delay} if delay else {}),
        },
    }


def _present(key: str) -> Object:
    return {"key": key, "operator": "Exists"}


def _absent(key: str) -> Object:
    return {"key": key, "operator": "DoesNotExist"}


def _with(key: str, value: str) -> Object:
    return {"key": key, "operator": "In", "values": [value]}


def _without(key: str, value: str) -> Object:
    return {"key": key, "operator": "NotIn", "values": [value]}
