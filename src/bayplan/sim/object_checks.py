"""Checking one object of an input before anything is simulated: the API's rules and our own."""

from collections.abc import Collection, Iterator
from typing import Any, cast, final

from bayplan import durations
from bayplan.adapters.api_validation import (
    SYSTEM_PRIORITY_CLASSES,
    identity_problems,
    problems,
)
from bayplan.adapters.object_names import Content, key_of, kind_of
from bayplan.adapters.selector_validation import one_of
from bayplan.api.objects import POD, PRIORITY_CLASS
from bayplan.durations import DurationError, parse_duration
from bayplan.problems import Problem, joined, wrong
from bayplan.sim.controller_kinds import controller_problems, is_controller
from bayplan.sim.not_understood import NotUnderstood
from bayplan.sim.refusals import Complaints
from bayplan.sim.workload import DURATION_ANNOTATION, WHEN_DONE, WHEN_DONE_ANNOTATION

CONFIGURATION = "KubeSchedulerConfiguration"


@final
class ObjectChecks:
    """Checks objects and keeps what is wrong with them."""

    def __init__(
        self,
        complaints: Complaints,
        priority_classes: Collection[str],
        not_understood: NotUnderstood | None = None,
    ) -> None:
        """``priority_classes``: the names of all classes there ever are in the input."""
        self._complaints = complaints
        self._not_understood = not_understood or NotUnderstood()
        self._priority_classes = (*sorted(priority_classes), *SYSTEM_PRIORITY_CLASSES)

    def accepts(self, value: Any, place: str) -> bool:
        """Whether a value is an object that can be created; if not, why is among the complaints."""
        found = list(self._identity(value))
        if not found:
            content = cast(Content, value)
            place = f"{place} ({key_of(content)})"
            found = self._problems(content)
        self._complaints.add_all(place, found)
        if not found:
            self._not_understood.see(cast(Content, value), place)
        return not found

    def _identity(self, value: Any) -> Iterator[Problem]:
        if isinstance(value, dict) and value.get("kind") == CONFIGURATION:
            wanted = "objects of a cluster; a scheduler's configuration is given with --config"
            yield wrong("kind", CONFIGURATION, wanted)
            return
        yield from identity_problems(value)

    def _problems(self, content: Content) -> list[Problem]:
        try:
            found = problems(content)
            if is_controller(content):
                found += controller_problems(content)
            return found or list(self._our_own(content))
        except RecursionError:
            return [Problem("", "is nested too deeply")]

    def _our_own(self, content: Content) -> Iterator[Problem]:
        """What the API server learns too late, or does not know: classes and annotations."""
        if kind_of(content) == POD:
            yield from self._pod(content, "")
        elif is_controller(content):
            yield from self._pod(content["spec"]["template"], "spec.template")

    def _pod(self, content: Content, path: str) -> Iterator[Problem]:
        spec, meta = content.get("spec") or {}, content.get("metadata") or {}
        name = spec.get("priorityClassName")
        if name and spec.get("priority") is None and name not in self._priority_classes:
            place = joined(path, "spec.priorityClassName")
            yield wrong(place, name, "a PriorityClass of the input", self._priority_classes)
        annotations = meta.get("annotations") or {}
        yield from _annotations(annotations, joined(path, "metadata.annotations"))


def _annotations(annotations: dict[str, str], path: str) -> Iterator[Problem]:
    duration = annotations.get(DURATION_ANNOTATION)
    if duration is not None:
        try:
            parse_duration(duration)
        except DurationError:
            yield wrong(joined(path, DURATION_ANNOTATION), duration, durations.WANTED)
    then = annotations.get(WHEN_DONE_ANNOTATION)
    if then is not None and then not in WHEN_DONE:
        yield wrong(joined(path, WHEN_DONE_ANNOTATION), then, one_of(WHEN_DONE), WHEN_DONE)


def priority_class_name(value: Any) -> str | None:
    """The name of a PriorityClass, wherever in an input it stands; None for all else."""
    if not isinstance(value, dict) or kind_of(cast(Content, value)) != PRIORITY_CLASS:
        return None
    meta = value.get("metadata")
    name = meta.get("name") if isinstance(meta, dict) else None
    return name if isinstance(name, str) else None
