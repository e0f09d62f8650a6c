"""The labels that a new node needs for a pod: those of its selector, of its affinity, and of the
places where its volumes are.

A label that states where a node is, such as a zone, is never invented: some node must have it, or a
volume of the pod must be there. An autoscaler can make a node in a zone that has none now.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from bayplan.api import objects
from bayplan.api.csi_migration import BETA_REGION, BETA_ZONE, REGION, ZONE, ZONE_DELIMITER
from bayplan.api.storage_objects import (
    WAIT_FOR_FIRST_CONSUMER,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from bayplan.explain.fixes.edits import plain
from bayplan.model.cluster_model import ClusterModel
from bayplan.objects.pools import POOL_LABELS
from bayplan.state.pods import PodInfo
from bayplan.state.storage_infos import ClaimInfo

#: A label of a volume → the label of its nodes. Nodes have the newer of two labels.
_NODE_LABELS = {ZONE: ZONE, REGION: REGION, BETA_ZONE: ZONE, BETA_REGION: REGION}

#: Labels of a node, and a term of a node selector as JSON has it.
Labels = dict[str, str]
Term = dict[str, Any]


def labels_to_add(model: ClusterModel, pod: PodInfo, present: Mapping[str, str]) -> Labels | None:
    """The labels that a node with labels ``present`` lacks for the pod. None: it is not known
    whether a node with them can exist.

    Of several terms, the one that needs the fewest labels counts.
    """
    needed, places = _of_pod(pod, present), Labels()
    for terms in _places_of_volumes(model, pod):
        places |= min((_lacking_of(term, present) for term in terms), key=len, default={})
    if any(places.get(k) != v and _is_unknown_fact(model, k, v) for k, v in needed.items()):
        return None
    if objects.HOSTNAME_LABEL in places or any(needed.get(k, v) != v for k, v in places.items()):
        return None
    # A label of a CSI driver, such as topology.ebs.csi.aws.com/zone, says the same as the common
    # one.
    same = {
        key: value
        for place, value in places.items()
        for key, old in present.items()
        if old == present.get(place) and _last_part(key) == _last_part(place)
    }
    return {**same, **needed, **places}


def _last_part(key: str) -> str:
    return key.rpartition("/")[2]


def _of_pod(pod: PodInfo, present: Mapping[str, str]) -> Labels:
    spec = plain(pod.spec)
    selector = dict(spec.get("nodeSelector") or {})
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    terms = (affinity.get(objects.REQUIRED) or {}).get("nodeSelectorTerms") or ()
    lacking = [_lacking_of(term, present) for term in terms]
    needed = {k: v for k, v in selector.items() if present.get(k) != v}
    return {**needed, **min(lacking, key=len, default={})}


def _lacking_of(term: Term, present: Mapping[str, str]) -> Labels:
    labels: Labels = {}
    for expression in term.get("matchExpressions") or ():
        key, values = expression["key"], expression.get("values") or ()
        operator = expression.get("operator")
        if operator == "In" and values and present.get(key) not in values:
            labels[key] = values[0]
        elif operator == "Exists" and key not in present:
            labels[key] = "true"
    return labels


def _is_unknown_fact(model: ClusterModel, key: str, value: str) -> bool:
    """Whether a label would state where a node is, or of which pool, and no node states that."""
    domain = key.partition("/")[0]
    is_fact = domain == "kubernetes.io" or domain.endswith(".kubernetes.io") or key in POOL_LABELS
    nodes = model.objects(objects.NODE) if is_fact else ()
    return is_fact and all((node.metadata.labels or {}).get(key) != value for node in nodes)


def _places_of_volumes(model: ClusterModel, pod: PodInfo) -> Iterator[list[Term]]:
    """For each claim of the pod, the terms of which a node must match one."""
    for claim_key in dict.fromkeys(pod.claim_keys()):
        namespace, _, name = claim_key.partition("/")
        claim = model.get(objects.PERSISTENT_VOLUME_CLAIM, namespace, name)
        if not isinstance(claim, PersistentVolumeClaim):
            continue
        volume = model.get(objects.PERSISTENT_VOLUME, "", claim.spec.volume_name or "")
        if isinstance(volume, PersistentVolume):
            yield terms_of_volume(volume)
            yield [{"matchExpressions": _zones_of_volume(volume)}]
            continue
        storage_class = model.get(objects.STORAGE_CLASS, "", ClaimInfo(claim).class_name)
        if (
            isinstance(storage_class, StorageClass)
            and storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
        ):
            yield _terms_of_class(storage_class)


def terms_of_volume(volume: PersistentVolume) -> list[Term]:
    """The terms of which a node must match one; without any, each node matches."""
    affinity = volume.spec.node_affinity
    required = None if affinity is None else affinity.required
    terms = () if required is None else required.node_selector_terms or ()
    return [plain(term) for term in terms]


def _zones_of_volume(volume: PersistentVolume) -> list[dict[str, Any]]:
    labels = volume.metadata.labels or {}
    return [
        {"key": own, "operator": "In", "values": labels[key].split(ZONE_DELIMITER)}
        for key, own in _NODE_LABELS.items()
        if key in labels
    ]


def _terms_of_class(storage_class: StorageClass) -> list[Term]:
    return [
        {
            "matchExpressions": [
                {"key": each.key, "operator": "In", "values": list(each.values or ())}
                for each in term.match_label_expressions or ()
            ]
        }
        for term in storage_class.allowed_topologies or ()
    ]
