"""Kinds of pods and nodes that the machine draws from: few values, so that they coincide."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from bayplan.api.objects import HOSTNAME_LABEL, ZONE_LABEL
from bayplan.testing import NodeOptions, PodOptions

_SMALL: Final[PodOptions] = {"cpu": "300m", "memory": "200Mi"}


def _tries(what: str, **labels: str) -> PodOptions:
    return {**_SMALL, "labels": {"try": what, **labels}}


def _terms(app: str, key: str) -> Mapping[str, Any]:
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}


def _required(app: str, key: str) -> Mapping[str, Any]:
    return {"requiredDuringSchedulingIgnoredDuringExecution": [_terms(app, key)]}


def _preferred(app: str, key: str, weight: int) -> Mapping[str, Any]:
    term = {"weight": weight, "podAffinityTerm": _terms(app, key)}
    return {"preferredDuringSchedulingIgnoredDuringExecution": [term]}


def _prefers(key: str, *values: str) -> Mapping[str, Any]:
    expression = {"key": key, "operator": "In", "values": list(values)}
    term = {"weight": 7, "preference": {"matchExpressions": [expression]}}
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}


def is_on(name: str) -> Mapping[str, Any]:
    """The affinity of a pod that names its node."""
    field = {"key": "metadata.name", "operator": "In", "values": [name]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def _spread(key: str, skew: int, when: str) -> Mapping[str, Any]:
    return {
        "maxSkew": skew,
        "topologyKey": key,
        "whenUnsatisfiable": when,
        "labelSelector": {"matchLabels": {"app": "web"}},
    }


def _claims(*names: str) -> PodOptions:
    volumes = [{"name": n, "persistentVolumeClaim": {"claimName": n}} for n in names]
    return {**_SMALL, "spec": {"volumes": volumes}}


_DISK: Final = {"name": "d", "gcePersistentDisk": {"pdName": "disk"}}
_DEVICE: Final = {"name": "d", "resourceClaimName": "d0"}
_WEB: Final = {"app": "web"}
_TOLERATES_ALL: Final = [{"operator": "Exists"}]
_TOLERATES_OLD: Final = [{"key": "old", "operator": "Equal", "value": "a"}]

KINDS: Final[Mapping[str, PodOptions]] = {
    "empty": {},
    "small": _SMALL,
    "memory only": {"memory": "900Mi"},
    "large": {"cpu": 3, "memory": "1Gi"},
    "too large": {"cpu": 50},
    "important": {**_SMALL, "priority": 10},
    "gated": {**_SMALL, "gates": ("later",)},
    "tolerant": {**_SMALL, "tolerations": _TOLERATES_ALL},
    "tolerates old": {**_SMALL, "tolerations": _TOLERATES_OLD},
    "port": {**_SMALL, "host_ports": [80]},
    "two ports": {**_SMALL, "host_ports": [80, 81], "labels": _WEB},
    "pinned": {**_SMALL, "affinity": is_on("n0")},
    "selects": {**_SMALL, "node_selector": {"color": "red"}},
    "prefers": {**_SMALL, "affinity": _prefers("color", "red", "green")},
    "prefers rank": {**_SMALL, "affinity": _prefers("rank", "1", "2"), "priority": 3},
    "image": {**_SMALL, "image": "registry.test/web:1"},
    "other image": {"cpu": "1", "image": "registry.test/db:latest"},
    "web": {**_SMALL, "labels": _WEB},
    "web important": {**_SMALL, "labels": _WEB, "priority": 5},
    "lone": {"labels": {"app": "lone", "try": "max"}},
    "apart from lone": {"affinity": {"podAntiAffinity": _required("lone", HOSTNAME_LABEL)}},
    "apart": {"labels": _WEB, "affinity": {"podAntiAffinity": _required("web", HOSTNAME_LABEL)}},
    "together": {
        **_SMALL,
        "labels": _WEB,
        "affinity": {"podAffinity": _required("web", ZONE_LABEL)},
    },
    "likes company": {
        **_SMALL,
        "affinity": {
            "podAffinity": _preferred("web", ZONE_LABEL, 40),
            "podAntiAffinity": _preferred("web", HOSTNAME_LABEL, 9),
        },
    },
    "spread hard": {**_SMALL, "labels": _WEB, "spread": [_spread(ZONE_LABEL, 1, "DoNotSchedule")]},
    "spread soft": {
        **_SMALL,
        "labels": _WEB,
        "spread": [_spread(HOSTNAME_LABEL, 1, "ScheduleAnyway")],
    },
    "shuns red": _tries("max", shun="red"),
    "shuns blue": _tries("rev", shun="blue"),
    "few": _tries("between", most="2"),
    "fickle": _tries("fickle.max"),
    "unsigned": _tries("unsigned"),
    "never signed": _tries("nosign.rev"),
    "fails": _tries("fails"),
    "fails and ranks": _tries("fails.max.rev"),
    "looks": _tries("looks"),
    "across": _tries("across"),
    "narrow": _tries("narrow.max"),
    "most": _tries("max"),
    "fewest": _tries("rev"),
    "between": _tries("between"),
    "all normalisers": _tries("max.rev.between"),
    "own normaliser": _tries("own"),
    "reserve": _tries("reserve"),
    "permit": _tries("permit"),
    "waits": _tries("wait.max"),
    "evictable": {"cpu": 1, "memory": "300Mi", "labels": _WEB},
    "makes room": {"cpu": 2, "memory": "500Mi"},
    "claim": _claims("c0"),
    "claims": _claims("c0", "c1"),
    "claim of one pod": _claims("c2"),
    "disk": {**_SMALL, "spec": {"volumes": [_DISK]}},
    "licensed": {**_SMALL, "requests": {"test.example/licence": 1, "test.example/seat": 1}},
    "device": {**_SMALL, "spec": {"resourceClaims": [_DEVICE]}},
    "counted device": {**_SMALL, "requests": {"test.example/gpu": 1}},
}

_IMAGES: Final = {"registry.test/web:1": 600 << 20, "registry.test/db:latest": 90 << 20}


def _labels(color: str, zone: str, rank: str) -> NodeOptions:
    return {"labels": {"color": color, ZONE_LABEL: zone, "rank": rank}}


def _one_image(name: str) -> Mapping[str, int]:
    return {name: _IMAGES[name]}


#: The subject of a change → the possible new values of a node.
CHANGES: Final[Mapping[str, Sequence[NodeOptions]]] = {
    "labels": [
        _labels(color, zone, rank)
        for color, zone, rank in (
            ("red", "a", "1"),
            ("blue", "b", "2"),
            ("red", "b", "0"),
            ("green", "c", "3"),
            ("blue", "a", "4"),
            ("red", "c", "2"),
        )
    ],
    "taints": [
        {"taints": []},
        {"taints": ["old=a:NoSchedule"]},
        {"taints": ["old=a:PreferNoSchedule"]},
        {"taints": ["old=b:NoExecute", "new=x:PreferNoSchedule"]},
    ],
    "cordons": [{"unschedulable": True}, {"unschedulable": False}],
    "images": [
        {"images": {}},
        {"images": _IMAGES},
        {"images": _one_image("registry.test/web:1")},
        {"images": _one_image("registry.test/db:latest")},
    ],
    "allocatable": [
        {"cpu": 2, "memory": "2Gi", "pods": 5},
        {"cpu": 4, "memory": "3Gi", "pods": 8},
        {"cpu": 3, "memory": "4Gi", "pods": 3},
        {"cpu": 8, "memory": "16Gi", "pods": 20},
    ],
    "what nobody reads": [
        {"conditions": [{"type": "Ready", "status": "True"}], "annotations": {"note": "a"}},
        {"conditions": [{"type": "Ready", "status": "False"}], "annotations": {"note": "b"}},
    ],
}


def _node_kind(index: int) -> NodeOptions:
    options: dict[str, Any] = {}
    for place, values in enumerate(CHANGES.values()):
        # Most nodes are plain in most respects, because all options at once leave no feasible node.
        is_plain = place in (1, 2) and (index + place) % 4
        options |= values[0 if is_plain else (index * (place + 3)) % len(values)]
    if index % 4:
        options["unschedulable"] = False
    return NodeOptions(**options)


NODE_KINDS: Final = [_node_kind(index) for index in range(20)]
#: Options of nodes that are equal when added and have more room than other nodes.
EQUAL_NODES: Final[NodeOptions] = {"cpu": 9, "memory": "20Gi", "pods": 30}
