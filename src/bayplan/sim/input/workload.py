"""A workload: the objects at the beginning of a simulation and the later steps. Plain data.

A workload can be written as JSON and read back, so that a run can be repeated. Contents of objects
are shared and never changed.
"""

from collections.abc import Iterator
from enum import StrEnum
from itertools import chain
from typing import Any, final

import msgspec
from msgspec import Struct

from bayplan.adapters.embedded.field_validation import ObjectKey, key_of
from bayplan.adapters.embedded.pod_gc_controller import PodGcTimes
from bayplan.api.objects import POD

Content = dict[str, Any]

_POD_VERSION, _POD_KIND = POD.split()

#: How long a pod runs once it is bound: a duration.
DURATION_ANNOTATION = "bayplan.dev/duration"
#: The end of such a pod: "succeed" (the default) or "delete".
WHEN_DONE_ANNOTATION = "bayplan.dev/when-done"
WHEN_DONE = ("succeed", "delete")


class Verb(StrEnum):
    CREATE = "create"
    PATCH = "patch"
    DELETE = "delete"


@final
class Step(Struct, frozen=True, kw_only=True):
    """One change of one object."""

    at_seconds: float
    verb: Verb
    key: ObjectKey
    #: The object to create, or a JSON merge patch; nothing for a deletion.
    content: Content = {}


@final
class Workload(Struct, frozen=True, kw_only=True):
    """All inputs of a simulation."""

    #: Objects at 0 s, in the order of their creation: first what is no pod, then running pods,
    #: then pending ones.
    initial: tuple[Content, ...] = ()
    #: What happens later, by time, and in the order of the files where times are equal.
    steps: tuple[Step, ...] = ()
    #: When to stop; None: when nothing is left to happen.
    until_seconds: float | None = None
    #: Pods that take the place of others that succeeded, by the uid of the Job of both.
    followers: dict[str, tuple[Content, ...]] = {}
    #: Pods of the input that had ended, and take no part.
    left_out_count: int = 0
    #: Kinds that nothing reads, and how many objects of them the input has.
    passed_over: dict[str, int] = {}
    #: When pods are collected whose node is gone: at once, unless the input says otherwise.
    pod_gc: PodGcTimes = PodGcTimes()
    #: What the reader should know: what was made up, and how.
    notes: tuple[str, ...] = ()

    @property
    def pod_count(self) -> int:
        """The number of pods that are created in the whole run."""
        return sum([content.get("kind") == "Pod" for content in self.created()])

    def created(self) -> Iterator[Content]:
        """Each object that is created, at the beginning or later."""
        steps = [step.content for step in self.steps if step.verb is Verb.CREATE]
        return chain(self.initial, steps, *self.followers.values())

    def for_scheduler(self, name: str) -> "Workload":
        """The same workload, with all pods to place assigned to one scheduler."""
        return msgspec.structs.replace(
            self,
            initial=tuple([_with_scheduler(content, name) for content in self.initial]),
            steps=tuple([_step_with_scheduler(step, name) for step in self.steps]),
            followers={
                uid: tuple(_with_scheduler(pod, name) for pod in pods)
                for uid, pods in self.followers.items()
            },
        )


def _with_scheduler(content: Content, scheduler_name: str) -> Content:
    if not is_pending_pod(content):
        return content
    return {**content, "spec": {**(content.get("spec") or {}), "schedulerName": scheduler_name}}


def _step_with_scheduler(step: Step, scheduler_name: str) -> Step:
    content = step.content
    if step.verb is Verb.CREATE:
        content = _with_scheduler(content, scheduler_name)
    return Step(at_seconds=step.at_seconds, verb=step.verb, key=step.key, content=content)


def create_step(at_seconds: float, content: Content) -> Step:
    return Step(at_seconds=at_seconds, verb=Verb.CREATE, key=key_of(content), content=content)


def is_pod(content: Content) -> bool:
    return content.get("kind") == _POD_KIND and content.get("apiVersion") == _POD_VERSION


def is_pending_pod(content: Content) -> bool:
    """A pod without a node."""
    if content.get("kind") != _POD_KIND or content.get("apiVersion") != _POD_VERSION:
        return False
    return not (content.get("spec") or {}).get("nodeName")


def has_ended(content: Content) -> bool:
    """Whether the object is a pod that succeeded or failed."""
    if content.get("kind") != _POD_KIND or content.get("apiVersion") != _POD_VERSION:
        return False
    return (content.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def claim_templates(pod: Content) -> Iterator[tuple[str, Content]]:
    """(name of the claim, its template) for each ephemeral volume of a pod."""
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        template: Any = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
        if template is not None:
            yield f"{pod['metadata']['name']}-{volume['name']}", template
