"""Objects of every kind that a simulation checks, each with changes of which most are mistakes.

Only fields that Bayplan checks are changed. `drawn` draws an object and up to two changes.
"""

import copy
import json
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.kit.manifests import Content, api_object

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


_OBJECTS: tuple[Content, ...] = (
    _workload("apps/v1 Deployment", replicas=1, selector=SELECTOR),
    _workload("apps/v1 ReplicaSet", replicas=1, selector=SELECTOR),
    _workload("apps/v1 StatefulSet", replicas=1, serviceName="s", selector=SELECTOR),
    _workload("apps/v1 DaemonSet", selector=SELECTOR),
    _workload("v1 ReplicationController", replicas=1, selector={"a": "b"}),
    _workload("batch/v1 Job", template=_template(restartPolicy="Never")),
    _policy("v1 LimitRange", limits=[{"type": "Container", "max": {"cpu": "2"}}]),
    _policy("v1 ResourceQuota", hard={"pods": "1"}),
    _policy("policy/v1 PodDisruptionBudget", minAvailable=1, selector=SELECTOR),
    api_object("node.k8s.io/v1 RuntimeClass", "x", handler="h"),
    api_object("scheduling.k8s.io/v1 PriorityClass", "x", value=5),
    api_object("v1 Node", "x", status={"allocatable": {"cpu": "4", "pods": "9"}}),
)
_NUMBERS = (-1, 0, 3)
_SHARES = ("25", "0%", "100%", "150%", -1, 0, 1)


def _rolling(*names: str) -> tuple[Any, ...]:
    single = [{"rollingUpdate": {name: value}} for name in names for value in _SHARES]
    pairs = [{"rollingUpdate": dict.fromkeys(names, value)} for value in (0, 1, "0%", "50%")]
    return (*single, *pairs, {"type": "RollingUpdate"})


_TEMPLATE: dict[str, tuple[Any, ...]] = {
    "spec.template.spec.restartPolicy": ("Always", "Never", "OnFailure", "Foo"),
    "spec.template.spec.activeDeadlineSeconds": (5, 0),
    "spec.template.spec.nodeSelector": ({"a b": "c"}, {"a": "c d"}, {"a": "c"}),
    "spec.template.spec.tolerations": ([FOO], [{"key": "a", "operator": "Exists"}]),
    "spec.template.spec.priorityClassName": ("Bad_", "good"),
    "spec.template.spec.containers": ([],),
    "metadata.name": ("Bad_", "-a", "a.b", "y" * 64),
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
    "Deployment": {
        **_TEMPLATE,
        **_SELECTED,
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
        "spec.podManagementPolicy": ("Foo", "Parallel"),
        "spec.updateStrategy": (
            {"type": "OnDelete"},
            {"type": "OnDelete", "rollingUpdate": {"partition": 1}},
            {"rollingUpdate": {"partition": -1}},
            *_rolling("maxUnavailable"),
        ),
        "spec.ordinals": ({"start": -1}, {"start": 5}),
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
    for path, value in changes:
        *parents, last = path.split(".")
        place: Any = content
        for name in parents:
            place = place[int(name)] if name.isdigit() else place.setdefault(name, {})
        place[last] = copy.deepcopy(value)
    return Drawn(content, tuple(f"{path}={json.dumps(value)}" for path, value in changes))
