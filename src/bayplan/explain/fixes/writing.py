"""Edits as a fix: changes of the objects that the user owns, and the commands that make them.

A change of a pod is a change of the template of its controller. The pods that the controller does
not replace by itself are deleted. A Job, whose template cannot change, and a pod without a
controller are deleted and created again. An object that no safe command can name, and a controller
that is not one of Kubernetes' own, get a sentence in place of a command.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import final

import yaml

from bayplan.adapters.embedded.field_validation import stable_uid
from bayplan.api.objects import (
    DAEMON_SET,
    JOB,
    LAST_APPLIED_ANNOTATION,
    POD,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
)
from bayplan.explain.explanation import Change, Fix
from bayplan.explain.fixes.commands import (
    deletion_command,
    optional,
    patch_command,
    replacement_command,
)
from bayplan.explain.fixes.edits import (
    Content,
    Edit,
    ObjectEdit,
    Patch,
    PodEdit,
    deletion_of,
    edited_spec,
    json_patch,
    patch_of,
    patched,
    plain,
)
from bayplan.explain.fixes.owners import Owners, manager_of, owner_text
from bayplan.model.cluster_model import ClusterModel
from bayplan.objects.keys import ObjectKey
from bayplan.sim.input.controller_kinds import CONTROLLERS
from bayplan.state.pods import PodInfo

#: The controllers that do not replace their waiting pods when their template changes.
_LEAVE_WAITING = frozenset((REPLICA_SET, REPLICATION_CONTROLLER, STATEFUL_SET))
#: The metadata of an object that a server writes.
_SERVER_FIELDS = (
    "creationTimestamp",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
)
_TOKEN_VOLUME = "kube-api-access-"
#: Labels that the Job controller adds, and refuses in a manifest.
_JOB_LABELS = (
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-name",
    "controller-uid",
    "job-name",
)


@final
@dataclass(slots=True)
class _Draft:
    """The parts of a fix while it is written."""

    changes: list[Change] = field(default_factory=list[Change])
    commands: list[str] = field(default_factory=list[str])
    #: Whether every change has a command.
    is_complete: bool = True


def fix_of(
    model: ClusterModel,
    owners: Owners,
    pod: PodInfo,
    peers: Sequence[str],
    *,
    edits: Sequence[Edit],
) -> Fix:
    """A fix whose outcome is not known yet, so it has no node.

    ``pod``: the pod in question; ``peers``: the pods of its workload that wait. Raises
    EditNotPossibleError.
    """
    pod_edits = [edit for edit in edits if isinstance(edit, PodEdit)]
    draft = _Draft()
    for edit in edits:
        if not isinstance(edit, PodEdit):
            draft.changes += edit.changes
            draft.commands += edit.commands
            draft.is_complete = draft.is_complete and (bool(edit.commands) or _is_a_node(edit))
    owner = owners.of(pod)
    if pod_edits:
        _change_pods(_Workload(model, owners, owner, pod, peers), pod_edits, draft)
    is_node = any(isinstance(edit, ObjectEdit) and _is_a_node(edit) for edit in edits)
    created = [c.content for c in draft.changes if c.content and not is_node]
    target = owner if pod_edits and owner is not None else None
    is_own = target is not None and owners.is_of_the_workload(target)
    name = owner_text(target) if target is not None else f"Pod {pod.key}" if pod_edits else ""
    content = None if owner is None or not pod_edits else owners.content(owner)
    is_complete = draft.is_complete and not (
        pod_edits and _is_named_here(owner or ObjectKey(POD, pod.namespace, pod.name), content, pod)
    )
    return Fix(
        changes_what=max(edits, key=lambda edit: edit.harm).changes_what,
        steps=tuple(edit.text for edit in edits),
        node="",
        changes=tuple(draft.changes),
        commands=tuple(dict.fromkeys(draft.commands)) if is_complete else (),
        manifest=_yaml(created),
        target=f"your {name}" if is_own else name,
        managed_by=manager_of(content) or _parent_text(owners, target),
        notes=tuple(dict.fromkeys(edit.note for edit in edits if edit.note)),
    )


def _is_named_here(key: ObjectKey, content: Content | None, pod: PodInfo) -> bool:
    """Whether an object of a file has only a generateName. Then its name was made here, and an API
    server would make another one. ``content``: the content of a controller; None: the object is
    ``pod``."""
    meta = plain(pod.pod)["metadata"] if content is None else content["metadata"]
    prefix = meta.get("generateName")
    is_made = bool(prefix) and key.name.startswith(prefix)
    return is_made and meta.get("uid") == stable_uid(key, 0)


def _parent_text(owners: Owners, target: ObjectKey | None) -> str:
    """The controller that writes the target, such as "CronJob default/nightly" or "Prometheus
    monitoring/k8s"; "": none does."""
    parent = None if target is None else owners.parent_of(target)
    return "" if parent is None else owner_text(parent)


def _is_a_node(edit: ObjectEdit) -> bool:
    """Whether an edit adds nodes, for which kubectl has no command."""
    return edit.changes_what == "node"


@final
@dataclass(frozen=True, slots=True)
class _Workload:
    """The pod in question and its controller."""

    model: ClusterModel
    owners: Owners
    owner: ObjectKey | None
    pod: PodInfo
    peers: Sequence[str]


def _change_pods(workload: _Workload, edits: list[PodEdit], draft: _Draft) -> None:
    """Raises EditNotPossibleError."""
    owner = workload.owner
    if owner is None:
        _change_bare_pods(workload, edits, draft)
        return
    content = workload.owners.template_content(owner) if owner.kind in CONTROLLERS else None
    if content is None:
        # The template is not known here, so the pods themselves stand for it.
        _change_waiting_pods(workload, edits, draft)
        return
    spec = content["spec"]["template"]["spec"]
    root = "/spec/template/spec"
    patch = _without_implied_priority(spec, json_patch(spec, edited_spec(spec, edits), root), root)
    if owner.kind == JOB:
        _replace_job(owner, content, patch, draft)
        return
    _add(draft, patch_of(owner, patch), lambda: patch_command(owner, patch))
    strategy = (content["spec"].get("updateStrategy") or {}).get("type")
    if owner.kind in _LEAVE_WAITING or (owner.kind == DAEMON_SET and strategy == "OnDelete"):
        for name in workload.peers:
            namespace, _, own = name.partition("/")
            key = ObjectKey(POD, namespace, own)
            _add(draft, deletion_of(key), lambda key=key: deletion_command(key))


def _add(draft: _Draft, change: Change, command: Callable[[], str]) -> None:
    """Add a change. ``command``: the function that returns the text of the command."""
    draft.changes.append(change)
    written = optional(command)
    draft.commands += written
    draft.is_complete = draft.is_complete and bool(written)


def _change_bare_pods(workload: _Workload, edits: list[PodEdit], draft: _Draft) -> None:
    """Change pods without a controller: by a patch if the API server accepts it, otherwise by a new
    pod."""
    key = ObjectKey(POD, workload.pod.namespace, workload.pod.name)
    content = workload.model.source.content(key) or plain(workload.pod.pod)
    patch = json_patch(content["spec"], edited_spec(content["spec"], edits), "/spec")
    if all(edit.is_accepted_for_pods for edit in edits):
        _add(draft, patch_of(key, patch), lambda: patch_command(key, patch))
        return
    whole = {**content, "apiVersion": "v1", "kind": "Pod"}
    written = _without_implied_priority(content["spec"], patch, "/spec")
    manifest = clean(patched(whole, patch))
    _add(draft, _replacement_of(key, manifest), lambda: replacement_command(key, written))


def _change_waiting_pods(workload: _Workload, edits: list[PodEdit], draft: _Draft) -> None:
    draft.is_complete = False
    for name in workload.peers:
        pod = workload.model.pod(name)
        if pod is not None:
            spec = plain(pod)["spec"]
            namespace, _, own = name.partition("/")
            patch = json_patch(spec, edited_spec(spec, edits), "/spec")
            draft.changes.append(patch_of(ObjectKey(POD, namespace, own), patch))


def _without_implied_priority(spec: Content, patch: Patch, root: str) -> Patch:
    """A patch of a pod's spec at ``root`` after which priority and preemption policy are absent,
    if it changes the priority class. Admission computes both from the class and refuses other
    values, so a template that had them would be wrong after the next change of its class."""
    if not any(each["path"] == f"{root}/priorityClassName" for each in patch):
        return patch
    implied = [f"{root}/{name}" for name in ("priority", "preemptionPolicy")]
    removed = [path for path in implied if path.rpartition("/")[2] in spec]
    return (
        *(each for each in patch if each["path"] not in implied),
        *({"op": "remove", "path": path} for path in removed),
    )


def _replace_job(key: ObjectKey, content: Content, patch: Patch, draft: _Draft) -> None:
    """Replace a Job, because its template cannot change. The controller makes its selector and
    labels again."""
    server: list[dict[str, str]] = []
    if not content["spec"].get("manualSelector"):
        if "selector" in content["spec"]:
            server.append({"op": "remove", "path": "/spec/selector"})
        template_labels = content["spec"]["template"].get("metadata", {}).get("labels") or {}
        places = (
            ("/metadata/labels", content["metadata"].get("labels") or {}),
            ("/spec/template/metadata/labels", template_labels),
        )
        for path, labels in places:
            server += [
                {"op": "remove", "path": f"{path}/{name.replace('/', '~1')}"}
                for name in _JOB_LABELS
                if name in labels
            ]
    whole: Patch = (*patch, *server)
    manifest = clean(patched(content, whole))
    _add(draft, _replacement_of(key, manifest), lambda: replacement_command(key, whole))


def _replacement_of(key: ObjectKey, manifest: Content) -> Change:
    return Change(
        verb="replace", kind=key.kind, name=key.name, namespace=key.namespace, content=manifest
    )


def clean(content: Content) -> Content:
    """A manifest without what a server and a scheduler write."""
    cleaned = {name: part for name, part in plain(content).items() if name != "status"}
    cleaned.pop("declared", None)
    meta = {n: v for n, v in cleaned["metadata"].items() if n not in _SERVER_FIELDS and v}
    annotations = meta.get("annotations") or {}
    annotations.pop(LAST_APPLIED_ANNOTATION, None)
    if not annotations:
        meta.pop("annotations", None)
    cleaned["metadata"] = meta
    spec = cleaned["spec"]
    if cleaned["kind"] == "Pod":
        spec.pop("nodeName", None)
        _remove_token(spec)
        spec.pop("priority", None)
        spec.pop("preemptionPolicy", None)
    return {name: cleaned[name] for name in ("apiVersion", "kind", "metadata", "spec")}


def _remove_token(spec: Content) -> None:
    """Remove the volume that admission added for the ServiceAccount, because it will add another
    one."""
    volumes = [
        volume
        for volume in spec.get("volumes") or ()
        if not volume.get("name", "").startswith(_TOKEN_VOLUME)
    ]
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


def _yaml(manifests: Iterable[Content]) -> str:
    listed = list(manifests)
    return yaml.safe_dump_all(listed, sort_keys=False) if listed else ""
