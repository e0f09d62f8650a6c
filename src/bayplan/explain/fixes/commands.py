"""Commands for a shell: what a person pastes to carry out a fix.

A command is one line of printable ASCII. A command names an object as ``resource/name``, except
`kubectl taint`, which accepts only ``resource name``. It does so only if the kind is known here,
and if the API server accepts the name and the namespace for such an object. Such names begin with a
letter or a digit and have no slash, so kubectl takes none of them for an option, a file or a URL.
An API server does not check the names in owner references. An object with another name gets no
command (`NoCommandError`), and the fix is a sentence.
"""

import json
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from bayplan.adapters.embedded.field_validation import is_dns_label, is_dns_subdomain
from bayplan.api import objects
from bayplan.api.device_objects import DEVICE_CLASS, RESOURCE_CLAIM
from bayplan.api.pod_groups import BUILT_IN_KINDS, api_group_of
from bayplan.api.selectors import is_label_key, is_label_value
from bayplan.objects.keys import ObjectKey, is_namespaced

#: The name for kubectl of each kind.
_RESOURCES = {
    objects.POD: "pod",
    objects.NODE: "node",
    objects.PERSISTENT_VOLUME: "persistentvolume",
    objects.PERSISTENT_VOLUME_CLAIM: "persistentvolumeclaim",
    objects.STORAGE_CLASS: "storageclass.storage.k8s.io",
    objects.REPLICATION_CONTROLLER: "replicationcontroller",
    objects.REPLICA_SET: "replicaset.apps",
    objects.DEPLOYMENT: "deployment.apps",
    objects.STATEFUL_SET: "statefulset.apps",
    objects.DAEMON_SET: "daemonset.apps",
    objects.JOB: "job.batch",
    RESOURCE_CLAIM: "resourceclaim.resource.k8s.io",
    DEVICE_CLASS: "deviceclass.resource.k8s.io",
    **{kind: f"podgroup.{api_group_of(kind)}" for kind in BUILT_IN_KINDS},
}
_EFFECTS = frozenset(("NoSchedule", "PreferNoSchedule", "NoExecute"))

Patch = Sequence[Mapping[str, Any]]


class NoCommandError(Exception):
    """No safe command names this object."""


def has_command(key: ObjectKey) -> bool:
    """Whether a command may name the object."""
    if key.kind not in _RESOURCES or not is_dns_subdomain(key.name):
        return False
    return is_dns_label(key.namespace) if is_namespaced(key.kind) else not key.namespace


def optional(command: Callable[[], str]) -> tuple[str, ...]:
    """The command; none if no command can name the object."""
    try:
        return (command(),)
    except NoCommandError:
        return ()


def patch_command(key: ObjectKey, patch: Patch) -> str:
    """Raises NoCommandError."""
    return f"kubectl patch {_object(key)} --type=json -p {shlex.quote(_json(patch))}"


def replacement_command(key: ObjectKey, patch: Patch) -> str:
    """Delete an object and create it again with a patch, for fields that cannot change.

    Raises NoCommandError.
    """
    local = f"kubectl patch --local -f - --type=json -p {shlex.quote(_json(patch))} -o json"
    return f"kubectl get {_object(key)} -o json | {local} | kubectl replace --force -f -"


def creation_command(contents: Iterable[Mapping[str, Any]]) -> str:
    """Create objects from manifests in the command itself."""
    items = list(contents)
    whole = items[0] if len(items) == 1 else {"apiVersion": "v1", "kind": "List", "items": items}
    return f"printf %s {shlex.quote(_json(whole))} | kubectl create -f -"


def deletion_command(key: ObjectKey) -> str:
    """Raises NoCommandError."""
    return f"kubectl delete {_object(key)}"


def scale_command(key: ObjectKey, replicas: int) -> str:
    """Raises NoCommandError."""
    return f"kubectl scale {_object(key)} --replicas={replicas}"


def annotation_command(key: ObjectKey, name: str, value: int) -> str:
    """Raises NoCommandError."""
    return f"kubectl annotate {_object(key)} {name}={value} --overwrite"


def uncordon_command(node: str) -> str:
    """Raises NoCommandError."""
    return f"kubectl uncordon {_object(ObjectKey(objects.NODE, '', node))}"


def taint_removal_command(node: str, taints: Iterable[tuple[str, str]]) -> str:
    """``taints``: (key, effect) of each. Raises NoCommandError."""
    listed = list(taints)
    if not all(is_label_key(key) and effect in _EFFECTS for key, effect in listed):
        raise NoCommandError(f"taints of node {node}")
    removed = " ".join(shlex.quote(f"{key}:{effect}-") for key, effect in listed)
    # This is the only verb that wants the resource and the name as two words.
    named = _object(ObjectKey(objects.NODE, "", node)).replace("/", " ")
    return f"kubectl taint {named} {removed}"


def label_command(node: str, labels: Mapping[str, str]) -> str:
    """Raises NoCommandError."""
    if not all(is_label_key(key) and is_label_value(value) for key, value in labels.items()):
        raise NoCommandError(f"labels of node {node}")
    pairs = " ".join(shlex.quote(f"{key}={value}") for key, value in sorted(labels.items()))
    return f"kubectl label {_object(ObjectKey(objects.NODE, '', node))} {pairs} --overwrite"


def _object(key: ObjectKey) -> str:
    if not has_command(key):
        raise NoCommandError(str(key))
    namespace = f" -n {shlex.quote(key.namespace)}" if key.namespace else ""
    return f"{_RESOURCES[key.kind]}/{shlex.quote(key.name)}{namespace}"


def _json(value: Any) -> str:
    """JSON of ASCII characters on one line, so that a terminal shows every character as it is."""
    return json.dumps(value, separators=(",", ":"))
