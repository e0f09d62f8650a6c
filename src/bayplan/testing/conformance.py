"""check_plugin: the contract of a plugin, as checks that any author runs.

Clusters and pods are drawn from a seed. The labels and annotations that the plugin reads are
recorded, and drawn, too. The message of a failed check names the broken promise and the correction.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bayplan.clock import wall_seconds
from bayplan.framework.plugin import Plugin
from bayplan.problems import ConfigError
from bayplan.testing import state_checks
from bayplan.testing.answer_checks import (
    leaves_its_mask_alone,
    notes_follow_a_what_if,
    same_question_same_answer,
    same_through_any_selection,
    unchanged_but_for_declared_facets,
)
from bayplan.testing.cases import PluginSubject, Prepare, Scene
from bayplan.testing.equivalence_checks import (
    equivalent_nodes_get_equal_results,
    pods_with_pins_are_answered_as_without,
    pre_state_serves_pods_of_one_template,
    same_row_by_row,
)
from bayplan.testing.evaluation import CheckFailed
from bayplan.testing.factories import PodOptions
from bayplan.testing.registration_checks import is_well_declared, registers_its_events
from bayplan.testing.signature_checks import (
    equal_signatures_equal_answers,
    signature_covers_what_is_read,
    signs_all_it_reads,
    signs_its_shape,
    signs_only_what_pods_share,
)

CLUSTERS: Final = 30

_Check = Callable[[PluginSubject, Scene], object]

#: Run in one cluster, because they do not depend on drawn objects.
_DECLARATIONS: Final[Sequence[_Check]] = (
    is_well_declared,
    registers_its_events,
    signs_its_shape,
)
#: Run in every cluster, in this order: checks that change the cluster come last.
_CHECKS: Final[Sequence[_Check]] = (
    state_checks.answers_with_its_codes,
    state_checks.post_filters_with_its_codes,
    state_checks.sorts_its_queue,
    leaves_its_mask_alone,
    same_question_same_answer,
    same_through_any_selection,
    same_row_by_row,
    signs_only_what_pods_share,
    signs_all_it_reads,
    equal_signatures_equal_answers,
    signature_covers_what_is_read,
    notes_follow_a_what_if,
    unchanged_but_for_declared_facets,
    pre_state_serves_pods_of_one_template,
    pods_with_pins_are_answered_as_without,
    equivalent_nodes_get_equal_results,
    state_checks.unreserve_undoes_reserve,
    state_checks.permits_and_binds,
    state_checks.generates_placements,
    state_checks.scores_placements,
)


@dataclass(frozen=True, slots=True)
class CheckReport:
    """Measurements of a plugin that passed."""

    #: In how many clusters it was checked.
    clusters: int
    #: Average of one pre_enqueue; 0 for a plugin without one.
    pre_enqueue_cpu_seconds: float


class _Progress:
    """A line on standard error, if it is a terminal, for checks that take longer than a moment."""

    def __init__(self, name: str, total: int) -> None:
        self._name, self._total = name, total
        self._start = wall_seconds()
        self._is_shown = False

    def show(self, done: int) -> None:
        if wall_seconds() - self._start > _QUIET_SECONDS and sys.stderr.isatty():
            self._is_shown = True
            text = f"{self._name}: {done} of {self._total} clusters checked"
            sys.stderr.write(f"\r{text}")
            sys.stderr.flush()

    def end(self) -> None:
        """Remove the line."""
        if self._is_shown:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


#: No progress is shown before: most plugins are checked within this time.
_QUIET_SECONDS: Final = 2.0


def check_plugin(
    plugin_class: type[Plugin],
    args: Any = None,
    *,
    pods: Sequence[PodOptions] = (),
    prepare: Prepare | None = None,
    clusters: int = CLUSTERS,
    seed: int = 1,
) -> CheckReport:
    """Raises CheckFailed if the plugin breaks the contract.

    ``pods``: keyword arguments of `pod` for further pods that concern the plugin. ``prepare``: adds
    objects that the plugin needs to each drawn cluster.
    """
    subject = PluginSubject(plugin_class, args, pods, prepare, seed=seed)
    try:
        first = subject.scene(0)
    except ConfigError as problem:
        hint = "; give it as check_plugin(…, args={…})" if args is None else ""
        # The message has all that an author needs; the traceback does not help.
        raise CheckFailed(f"args: {problem}{hint}") from None
    for check in _DECLARATIONS:
        check(subject, first)
    subject.listen()
    progress = _Progress(subject.name, clusters)
    try:
        for index in range(clusters):
            progress.show(index)
            scene = subject.scene(index)
            for check in _CHECKS:
                check(subject, scene)
    finally:
        progress.end()
    taken = state_checks.gates_quickly(subject, first)
    first.plugin.close()
    return CheckReport(clusters, taken)
