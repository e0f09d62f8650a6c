"""A solution as a fix: patches of the owning controller, manifests, and commands."""

import shlex
from copy import deepcopy
from typing import Any

import msgspec
import yaml

from bayplan.adapters.embedded.field_validation import ObjectKey
from bayplan.api.objects import POD
from bayplan.explain.explanation import Change, Fix
from bayplan.explain.fixes.edits import (
    Content,
    EditNotPossibleError,
    PodEdit,
    edited_spec,
    json_patch,
    plain,
)
from bayplan.explain.fixes.search import Solution
from bayplan.model.cluster_model import ClusterModel
from bayplan.model.objects import ClusterObjects
from bayplan.sim.input.controller_kinds import DAEMON_SET, DEPLOYMENT, JOB
from bayplan.state.pods import PodInfo

#: Controllers whose template may be patched; the others must be deleted and created again.
_PATCHABLE = frozenset(
    (
        DEPLOYMENT,
        DAEMON_SET,
        "apps/v1 StatefulSet",
        "apps/v1 ReplicaSet",
        "v1 ReplicationController",
    )
)
#: What a server writes into the metadata of an object.
_SERVER_FIELDS = (
    "creationTimestamp",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
)
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_TOKEN_VOLUME = "kube-api-access-"
#: Labels that the Job controller adds, and refuses in a manifest.
_JOB_LABELS = (
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-name",
    "controller-uid",
    "job-name",
)


def fix_of(model: ClusterModel, pod: PodInfo, solution: Solution) -> Fix:
    """A fix with commands. ``pod``: the pod in question. Raises EditNotPossibleError."""
    pod_edits = [edit for edit in solution.edits if isinstance(edit, PodEdit)]
    changes: list[Change] = []
    commands: list[str] = []
    manifests: list[Content] = []
    for edit in solution.edits:
        if not isinstance(edit, PodEdit):
            changes += edit.changes
            commands += edit.commands
            created = [c.content for c in edit.changes if c.verb != "delete" and c.content]
            manifests += created if edit.changes_what == "object" else []
    if pod_edits:
        change, command = _change_of_pod(model.source, pod, pod_edits)
        changes.append(change)
        commands.append(command)
        if change.content is not None:
            manifests.append(change.content)
    attempt = solution.attempt
    what: Any = solution.changes_what
    return Fix(
        changes_what=what,
        steps=tuple(edit.text for edit in solution.edits),
        node=attempt.node or attempt.nominated_node,
        changes=tuple(changes),
        commands=tuple(dict.fromkeys(commands)),
        manifest=_yaml(manifests),
    )


def _change_of_pod(
    objects: ClusterObjects, pod: PodInfo, edits: list[PodEdit]
) -> tuple[Change, str]:
    """By the template of the controller; else by a patch of the pod, where the API server accepts
    it; else by a new pod. Raises EditNotPossibleError."""
    owner = owner_of(objects, pod)
    is_patch = all(edit.is_accepted_for_pods for edit in edits)
    if owner is not None:
        content = objects.content(owner)
        template = None if content is None else (content.get("spec") or {}).get("template")
        if content is not None and template is not None:
            try:
                return _change_of_template(owner, content, edits)
            except EditNotPossibleError:
                # Admission, or the controller itself, added what the template does not have.
                if not is_patch:
                    raise
    key = ObjectKey(POD, pod.namespace, pod.name)
    content = objects.content(key) or plain(pod.pod)
    changed = edited_spec(content["spec"], edits)
    if is_patch:
        return _patch(key, json_patch(content["spec"], changed, "/spec"))
    manifest = clean({**content, "apiVersion": "v1", "kind": "Pod", "spec": changed})
    change, command = _replacement(key, manifest)
    controller = next((o for o in pod.metadata.owner_references or () if o.controller), None)
    if controller is not None:
        # Its template is not known here, and a new pod would not be its own.
        name = f"{shlex.quote(controller.kind.lower())} {shlex.quote(controller.name)}"
        command = f"kubectl edit {name} -n {shlex.quote(pod.namespace)}"
    return change, command


def owner_of(objects: ClusterObjects, pod: PodInfo) -> ObjectKey | None:
    """The topmost controller of a pod whose content is there."""
    references = pod.metadata.owner_references or ()
    owner: ObjectKey | None = None
    controller = next((each for each in references if each.controller), None)
    key = None
    if controller is not None:
        kind = f"{controller.api_version} {controller.kind}"
        key = ObjectKey(kind, pod.namespace, controller.name)
    while key is not None:
        content = objects.content(key)
        if content is None:
            break
        owner = key
        above = [
            each
            for each in content.get("metadata", {}).get("ownerReferences") or ()
            if each.get("controller")
        ]
        key = None
        if above:
            kind = f"{above[0]['apiVersion']} {above[0]['kind']}"
            key = ObjectKey(kind, pod.namespace, above[0]["name"])
    return owner


def _change_of_template(
    owner: ObjectKey, content: Content, edits: list[PodEdit]
) -> tuple[Change, str]:
    spec = content["spec"]["template"]["spec"]
    changed = edited_spec(spec, edits)
    if owner.kind in _PATCHABLE:
        return _patch(owner, json_patch(spec, changed, "/spec/template/spec"))
    whole = deepcopy(content)
    whole["spec"]["template"]["spec"] = changed
    version, _, kind = owner.kind.partition(" ")
    manifest = clean({**whole, "apiVersion": version, "kind": kind})
    if owner.kind == JOB and not manifest["spec"].get("manualSelector"):
        manifest["spec"].pop("selector", None)
        labels = manifest["spec"]["template"].get("metadata", {}).get("labels") or {}
        for name in _JOB_LABELS:
            labels.pop(name, None)
            (manifest["metadata"].get("labels") or {}).pop(name, None)
    return _replacement(owner, manifest)


def _patch(key: ObjectKey, patch: tuple[dict[str, Any], ...]) -> tuple[Change, str]:
    change = Change(
        verb="patch", kind=key.kind, name=key.name, namespace=key.namespace, patch=patch
    )
    kind = key.kind.rpartition(" ")[2].lower()
    text = msgspec.json.encode(patch).decode()
    command = (
        f"kubectl patch {kind} {shlex.quote(key.name)} -n {shlex.quote(key.namespace)} "
        f"--type=json -p {shlex.quote(text)}"
    )
    return change, command


def _replacement(key: ObjectKey, manifest: Content) -> tuple[Change, str]:
    change = Change(
        verb="replace", kind=key.kind, name=key.name, namespace=key.namespace, content=manifest
    )
    return change, "kubectl replace --force -f -"


def clean(content: Content) -> Content:
    """A manifest without what a server and a scheduler write."""
    cleaned = {name: part for name, part in deepcopy(content).items() if name != "status"}
    cleaned.pop("declared", None)
    meta = {n: v for n, v in cleaned["metadata"].items() if n not in _SERVER_FIELDS and v}
    annotations = meta.get("annotations") or {}
    annotations.pop(_LAST_APPLIED, None)
    if not annotations:
        meta.pop("annotations", None)
    cleaned["metadata"] = meta
    spec = cleaned["spec"]
    if cleaned["kind"] == "Pod":
        spec.pop("nodeName", None)
        _remove_token(spec)
        _remove_implied_priority(spec)
    return {name: cleaned[name] for name in ("apiVersion", "kind", "metadata", "spec")}


def _remove_token(spec: Content) -> None:
    """The volume that admission adds for the ServiceAccount: it adds another one."""
    volumes = [v for v in spec.get("volumes") or () if not v["name"].startswith(_TOKEN_VOLUME)]
    spec["volumes"] = volumes
    if not volumes:
        del spec["volumes"]
    for container in (*spec["containers"], *(spec.get("initContainers") or ())):
        mounts = [
            mount
            for mount in container.get("volumeMounts") or ()
            if not mount.get("name", _TOKEN_VOLUME).startswith(_TOKEN_VOLUME)
        ]
        container["volumeMounts"] = mounts
        if not mounts:
            del container["volumeMounts"]


def _remove_implied_priority(spec: Content) -> None:
    """Admission computes both from the priority class, and refuses others."""
    spec.pop("priority", None)
    spec.pop("preemptionPolicy", None)


def _yaml(manifests: list[Content]) -> str:
    return yaml.safe_dump_all(manifests, sort_keys=False) if manifests else ""
