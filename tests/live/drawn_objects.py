"""Objects of every kind that a simulation checks, each with changes of which most are mistakes.

Only fields that Bayplan checks are changed; drawn_manifests.py has those that no scheduler reads.
`drawn` draws an object and up to two changes.
"""

import copy
import json
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.kit.manifests import Content, api_object
from tests.live.drawn_manifests import FAILURE_RULES, META, changes_of_pods

SELECTOR = {"matchLabels": {"a": "b"}}
FOO = {"key": "a", "operator": "Foo"}


class Drawn(NamedTuple):
    """An object, and what was changed."""

    content: Content
    changes: tuple[str, ...]


def _template(**spec: Any) -> Content:
    containers = [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}]
    return {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": containers, **spec}}


def _workload(kind: str, **spec: Any) -> Content:
    return api_object(kind, "x", "default", spec={"template": _template(), **spec})


def _policy(kind: str, **spec: Any) -> Content:
    return api_object(kind, "x", "default", spec=spec)


_VOLUME = {"name": "v", "emptyDir": {}}
_CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
_REQUEST = {"name": "r", "exactly": {"deviceClassName": "c"}}
_DEVICES = {"requests": [_REQUEST]}


_OBJECTS: tuple[Content, ...] = (
    _workload("apps/v1 Deployment", replicas=1, selector=SELECTOR),
    _workload("apps/v1 ReplicaSet", replicas=1, selector=SELECTOR),
    _workload(
        "apps/v1 StatefulSet",
        replicas=1,
        serviceName="s",
        selector=SELECTOR,
        volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": _CLAIM}],
    ),
    _workload("apps/v1 DaemonSet", selector=SELECTOR),
    _workload("v1 ReplicationController", replicas=1, selector={"a": "b"}),
    _workload("batch/v1 Job", template=_template(restartPolicy="Never")),
    _policy("v1 LimitRange", limits=[{"type": "Container", "max": {"cpu": "2"}}]),
    _policy("v1 ResourceQuota", hard={"pods": "1"}),
    _policy("policy/v1 PodDisruptionBudget", minAvailable=1, selector=SELECTOR),
    api_object("node.k8s.io/v1 RuntimeClass", "x", handler="h"),
    api_object("scheduling.k8s.io/v1 PriorityClass", "x", value=5),
    api_object("v1 Pod", "x", "default", spec={**_template()["spec"], "volumes": [_VOLUME]}),
    api_object("v1 PersistentVolumeClaim", "x", "default", spec=_CLAIM),
    api_object(
        "v1 PersistentVolume",
        "x",
        spec={
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "hostPath": {"path": "/x"},
        },
    ),
    api_object("storage.k8s.io/v1 StorageClass", "x", provisioner="p.example.com"),
    api_object("resource.k8s.io/v1 ResourceClaim", "x", "default", spec={"devices": _DEVICES}),
    api_object("v1 Node", "x", status={"allocatable": {"cpu": "4", "pods": "9"}}),
)
_NUMBERS = (-1, 0, 3)
_SHARES = ("25", "0%", "100%", "150%", -1, 0, 1)


def _rolling(*names: str) -> tuple[Any, ...]:
    single = [{"rollingUpdate": {name: value}} for name in names for value in _SHARES]
    pairs = [{"rollingUpdate": dict.fromkeys(names, value)} for value in (0, 1, "0%", "50%")]
    return (*single, *pairs, {"type": "RollingUpdate"})


_CONTAINER = _template()["spec"]["containers"][0]
_MOUNT = {"name": "v", "mountPath": "/a"}


def _in_pods(path: str) -> dict[str, tuple[Any, ...]]:
    """Changes of the spec of pods at ``path``, besides those of scheduling."""
    return {
        f"{path}.containers.0.name": ("", None, "Bad_", "a.b", "y" * 64),
        f"{path}.containers.0.image": ("", None, "app:1"),
        f"{path}.containers": (
            [],
            [_CONTAINER] * 2,
            [_CONTAINER, {**_CONTAINER, "name": "d"}],
            [{"name": "c"}],
        ),
        f"{path}.initContainers": (
            [_CONTAINER],
            [{**_CONTAINER, "name": "i"}],
            [{**_CONTAINER, "name": "i"}] * 2,
            [{"name": "i"}],
            [{"image": "x"}],
        ),
        f"{path}.containers.0.volumeMounts": ([{"name": "nope", "mountPath": "/a"}], [{**_MOUNT}]),
        f"{path}.volumes": (
            [_VOLUME] * 2,
            [_VOLUME, {"name": "w"}],
            [{"emptyDir": {}}],
            [{"name": "Bad_", "emptyDir": {}}],
            [{**_VOLUME, "secret": {"secretName": "s"}}],
            [{"name": "v", "persistentVolumeClaim": {}}],
            [{"name": "v", "ephemeral": {}}],
            [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}],
            [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": _CLAIM}}}],
        ),
        f"{path}.hostname": ("Bad_", "a.b", "x"),
        f"{path}.subdomain": ("Bad_", "x"),
        f"{path}.serviceAccountName": ("Bad_", "x"),
    }


def _merged(*groups: dict[str, tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
    """All changes of all groups, also where they have the same path."""
    merged: dict[str, tuple[Any, ...]] = {}
    for group in groups:
        for path, values in group.items():
            merged[path] = (*merged.get(path, ()), *values)
    return merged


def _in_claims(path: str) -> dict[str, tuple[Any, ...]]:
    """Changes of the spec of claims at ``path``."""
    return {
        f"{path}.accessModes": ([], None, ["Foo"], ["ReadWriteOnce", "ReadWriteMany"]),
        f"{path}.resources": (
            None,
            {},
            *({"requests": {"storage": amount}} for amount in ("", "0", "-1", "1.5", "2Gi")),
            {"requests": {"cpu": "1"}},
        ),
        f"{path}.storageClassName": ("Bad_", "", "x"),
        f"{path}.volumeMode": ("Foo", "Block"),
        f"{path}.selector": ({"matchLabels": {"a b": "c"}}, {}),
        f"{path}.volumeAttributesClassName": ("Bad_", "x"),
    }


_NAMES: dict[str, tuple[Any, ...]] = {
    "metadata.name": ("Bad_", "-a", "a.b", "a..b", "y" * 254, "a/b", "é"),
    "metadata.finalizers": (["a"], ["a b/c"], ["a/b"]),
}
_TEMPLATE: dict[str, tuple[Any, ...]] = {
    "spec.template.spec.restartPolicy": ("Always", "Never", "OnFailure", "Foo"),
    "spec.template.spec.activeDeadlineSeconds": (5, 0),
    "spec.template.spec.nodeSelector": ({"a b": "c"}, {"a": "c d"}, {"a": "c"}),
    "spec.template.spec.tolerations": ([FOO], [{"key": "a", "operator": "Exists"}]),
    "spec.template.spec.priorityClassName": ("Bad_", "good"),
    "spec.template.spec.containers": ([],),
    "metadata.name": ("Bad_", "-a", "a.b", "y" * 64),
    "metadata.finalizers": (["a"], ["a/b"]),
    **_in_pods("spec.template.spec"),
}
_SELECTED: dict[str, tuple[Any, ...]] = {
    "spec.replicas": (*_NUMBERS, "2", 1.5),
    "spec.minReadySeconds": _NUMBERS,
    "spec.selector": (
        {},
        {"matchLabels": {"a": "c"}},
        {"matchExpressions": [{"key": "a", "operator": "In", "values": []}]},
        {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
    ),
    "spec.template.metadata.labels": ({"a": "b", "c": "d"}, {"a": "c"}),
}
_DAEMONS = {path: values for path, values in _SELECTED.items() if path != "spec.replicas"}
_CHANGES: dict[str, dict[str, tuple[Any, ...]]] = {
    "Pod": {**_NAMES, **META, **_merged(_in_pods("spec"), changes_of_pods("spec"))},
    "PersistentVolumeClaim": {**_NAMES, **META, **_in_claims("spec")},
    "PersistentVolume": {
        **_NAMES,
        "spec.accessModes": ([], None, ["Foo"], ["ReadWriteOncePod", "ReadOnlyMany"]),
        "spec.capacity": (None, {}, {"storage": "0"}, {"cpu": "1"}, {"storage": "1Gi", "cpu": "1"}),
        "spec.hostPath": (None, {"path": "/"}),
        "spec.nfs": ({"server": "s", "path": "/x"},),
        "spec.persistentVolumeReclaimPolicy": ("Foo", "Retain"),
        "spec.nodeAffinity": ({}, {"required": {"nodeSelectorTerms": [{}]}}),
        "spec.storageClassName": ("Bad_", ""),
    },
    "StorageClass": {
        **_NAMES,
        "provisioner": ("", None, "Bad_", "a b", "a.b/c"),
        "reclaimPolicy": ("Foo", "Retain"),
        "volumeBindingMode": ("Foo", "Immediate"),
        "allowVolumeExpansion": ("true", True),
        "parameters": ({"a": 5}, {"a": "b"}),
        "allowedTopologies": tuple(
            [{"matchLabelExpressions": [{"key": key, "values": values}]}]
            for key, values in (("a", ["b"]), ("a", []), ("a b", ["b"]))
        ),
    },
    "ResourceClaim": {
        **_NAMES,
        "spec.devices.requests": ([], [{}], [{"name": "r"}], [_REQUEST] * 2, [_REQUEST]),
        "spec.devices.constraints": (
            [{}],
            [{"matchAttribute": "a"}],
            [{"matchAttribute": "a.com/b"}],
            [{"matchAttribute": "a.com/b", "distinctAttribute": "a.com/b"}],
            [{"matchAttribute": "a.com/b", "requests": ["s"]}],
        ),
    },
    "Deployment": {
        **META,
        **_merged(_TEMPLATE, changes_of_pods("spec.template.spec")),
        **_SELECTED,
        "spec.revisionHistoryLimit": (-1, 0, "5"),
        "spec.strategy": (
            {"type": "Recreate"},
            {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}},
            *_rolling("maxSurge", "maxUnavailable"),
        ),
        "spec.progressDeadlineSeconds": (-1, 0, 5),
        "spec.paused": (True, "yes"),
    },
    "ReplicaSet": {**_TEMPLATE, **_SELECTED},
    "StatefulSet": {
        **_TEMPLATE,
        **_SELECTED,
        **_in_claims("spec.volumeClaimTemplates.0.spec"),
        "spec.serviceName": ("Bad_", "x"),
        "spec.podManagementPolicy": ("Foo", "Parallel"),
        "spec.updateStrategy": (
            {"type": "OnDelete"},
            {"type": "OnDelete", "rollingUpdate": {"partition": 1}},
            {"rollingUpdate": {"partition": -1}},
            *_rolling("maxUnavailable"),
        ),
        "spec.ordinals": ({"start": -1}, {"start": 5}),
        "spec.persistentVolumeClaimRetentionPolicy": ({"whenScaled": "Foo"}, {}),
        "spec.volumeClaimTemplates.0.metadata.name": ("Bad_", ""),
    },
    "DaemonSet": {
        **_TEMPLATE,
        **_DAEMONS,
        "spec.updateStrategy": ({"type": "OnDelete"}, *_rolling("maxSurge", "maxUnavailable")),
    },
    "ReplicationController": {
        **_TEMPLATE,
        "spec.replicas": _NUMBERS,
        "spec.selector": ({"a": "c"}, {"matchLabels": {"a": "b"}}),
    },
    "Job": {
        **_TEMPLATE,
        "spec.parallelism": _NUMBERS,
        "spec.completions": _NUMBERS,
        "spec.completionMode": ("Foo", "Indexed", "NonIndexed"),
        "spec.backoffLimit": _NUMBERS,
        "spec.activeDeadlineSeconds": _NUMBERS,
        "spec.backoffLimitPerIndex": _NUMBERS,
        "spec.maxFailedIndexes": _NUMBERS,
        "spec.ttlSecondsAfterFinished": _NUMBERS,
        "spec.podReplacementPolicy": ("Foo", "Failed", "TerminatingOrFailed"),
        "spec.podFailurePolicy": tuple({"rules": [rule]} for rule in FAILURE_RULES),
        "spec.selector": (SELECTOR, {}),
    },
    "LimitRange": {
        "spec.limits.0.type": ("Foo", "Pod", "PersistentVolumeClaim", "example.com/x"),
        **{
            f"spec.limits.0.{field}": (
                {"cpu": "1"},
                {"cpu": "3"},
                {"memory": "1Gi", "cpu": "500m"},
                {"nvidia.com/gpu": "1"},
                {"foo": "1"},
                {"storage": "1Gi"},
            )
            for field in ("min", "max", "default", "defaultRequest", "maxLimitRequestRatio")
        },
    },
    "ResourceQuota": {
        "spec.hard": (
            {"cpu": "1"},
            {"cpu": "-1"},
            {"pods": "1.5"},
            {"foo": "1"},
            {"storage": "1"},
            {"services": "1"},
            {"count/pods": "1"},
            {"limits.ephemeral-storage": "1Gi"},
            {"hugepages-2Mi": "2Mi"},
        ),
        "spec.scopes": (
            ["BestEffort"],
            ["NotBestEffort"],
            ["PriorityClass"],
            ["Foo"],
            ["BestEffort", "NotBestEffort"],
            ["Terminating", "NotTerminating"],
            ["Terminating", "BestEffort"],
        ),
        "spec.scopeSelector": tuple(
            {"matchExpressions": [{"scopeName": scope, "operator": operator, **values}]}
            for scope in ("BestEffort", "PriorityClass", "Foo")
            for operator in ("In", "Exists", "Foo")
            for values in ({}, {"values": ["a"]})
        ),
    },
    "PodDisruptionBudget": {
        "spec.minAvailable": _SHARES,
        "spec.maxUnavailable": _SHARES,
        "spec.selector": ({"matchExpressions": [FOO]}, {}),
        "spec.unhealthyPodEvictionPolicy": ("Foo", "AlwaysAllow"),
    },
    "RuntimeClass": {
        "overhead": ({"podFixed": {"cpu": "-1"}}, {"podFixed": {"foo": "1"}}, {}),
        "scheduling": (
            {"nodeSelector": {"a b": "c"}},
            {"nodeSelector": {"a": "c"}},
            {"tolerations": [FOO]},
        ),
        "metadata.name": ("Bad_", "a.b"),
        "handler": ("", None, "Bad_", "a.b", 5),
    },
    "PriorityClass": {
        "value": (1_000_000_000, 1_000_000_001, -5),
        "metadata.name": ("system-foo", "Bad_"),
        "preemptionPolicy": ("Foo", "Never"),
    },
    "Node": {
        "status.allocatable": (
            {"cpu": "-1"},
            {"cpu": "x"},
            {"foo": "1"},
            {"hugepages-2Mi": "3Mi"},
            {"nvidia.com/gpu": "1.5"},
        ),
        "spec.taints": (
            [{"key": "a", "effect": "Foo"}],
            [{"key": "a b", "effect": "NoSchedule"}],
            [{"key": "a", "value": "b c", "effect": "NoSchedule"}],
            [{"key": "a", "effect": "NoSchedule"}] * 2,
        ),
    },
}


def single_changes() -> Iterator[Drawn]:
    """Every object as it is, and with each of its changes."""
    for content in _OBJECTS:
        yield Drawn(content, ())
        for path, values in _CHANGES[content["kind"]].items():
            for value in values:
                yield _changed(content, [(path, value)])


def drawn(seed: int, count: int) -> Iterator[Drawn]:
    """Objects with two changes each; equal seeds draw equal objects."""
    draw = random.Random(seed)
    for _ in range(count):
        content = draw.choice(_OBJECTS)
        fields = draw.sample(list(_CHANGES[content["kind"]].items()), 2)
        yield _changed(content, [(path, draw.choice(values)) for path, values in fields])


def _changed(content: Content, changes: list[tuple[str, Any]]) -> Drawn:
    content = copy.deepcopy(content)
    # What is inside another changed field is changed first: the other may be without it.
    for path, value in sorted(changes, key=lambda change: -len(change[0])):
        *parents, last = path.split(".")
        place: Any = content
        for name in parents:
            place = place[int(name)] if name.isdigit() else place.setdefault(name, {})
        place[last] = copy.deepcopy(value)
    return Drawn(content, tuple(f"{path}={json.dumps(value)}" for path, value in changes))
