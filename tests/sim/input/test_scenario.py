"""Scenario documents become actions."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.adapters.embedded.pod_gc_controller import PodGcTimes
from bayplan.sim.input.errors import InputError, InputErrors
from bayplan.sim.input.scenario import Scenario, read_scenario
from bayplan.sim.input.sources import Part
from bayplan.sim.input.workload import Verb
from tests.sim.manifests import scenario


def read(value: Any) -> tuple[Scenario, list[str]]:
    """The scenario and its problems."""
    errors = InputErrors()
    document = read_scenario(Part(value, "s.yaml, document 1"), errors)
    try:
        errors.raise_if_any()
    except InputError as problem:
        return document, list(problem.lines)
    return document, []


def lines(*events: Any, **spec: Any) -> list[str]:
    return [
        line.removeprefix("s.yaml, document 1: ") for line in read(scenario(*events, **spec))[1]
    ]


def test_actions_have_the_order_in_which_they_are_written() -> None:
    result, wrong = read(
        scenario(
            {"at": "5s", "delete": ["a"], "create": ["b", "c"]},
            {"at": 1, "patch": ["d"]},
            until="1m",
        )
    )
    assert wrong == []
    assert result.until_seconds == 60.0
    assert [(one.at_seconds, one.verb, one.value) for one in result.actions] == [
        (5.0, Verb.DELETE, "a"),
        (5.0, Verb.CREATE, "b"),
        (5.0, Verb.CREATE, "c"),
        (1.0, Verb.PATCH, "d"),
    ]
    assert result.actions[2].place == "s.yaml, document 1: spec.events[0].create[1]"


def test_a_scenario_may_be_empty() -> None:
    for value in (scenario(), scenario({"at": 0}), scenario({"at": 0, "create": None})):
        assert read(value) == (Scenario(None, []), [])


def test_a_scenario_may_set_the_period_of_pod_garbage_collection() -> None:
    result, wrong = read(scenario(podGC={"quarantine": "40s", "period": 20}))
    assert (wrong, result.pod_gc) == ([], PodGcTimes(40.0, 20.0))
    assert read(scenario(podGC={}))[0].pod_gc == PodGcTimes(0.0, 0.0)


def test_invalid_pod_gc_fields_are_reported() -> None:
    assert lines(podGC="now") == ['spec.podGC: found "now", wanted a mapping of quarantine, period']
    assert lines(podGC={"perriod": "40s", "period": "soon"}) == [
        'spec.podGC: found "perriod", wanted one of quarantine, period; did you mean "period"?',
        f'spec.podGC.period: found "soon", wanted {A_DURATION}',
    ]


A_DURATION = "a duration such as 30s, 1m30s, 250ms or a number of seconds"
VERB_NAMES = "create, patch, delete, scale, cordon, uncordon, evict, drain"
VERBS = f"one of at, {VERB_NAMES}"


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (
            {"at": 0, "crate": []},
            f'spec.events[0]: found "crate", wanted {VERBS}; did you mean "create"?',
        ),
        ({"at": "soon"}, f'spec.events[0].at: found "soon", wanted {A_DURATION}'),
        ({"create": []}, f"spec.events[0].at: found nothing, wanted {A_DURATION}"),
        ({"at": 0, "create": {}}, "spec.events[0].create: found a mapping, wanted a list"),
        ("create", f'spec.events[0]: found "create", wanted a mapping of at, {VERB_NAMES}'),
    ],
)
def test_an_invalid_event_is_reported(event: Any, line: str) -> None:
    assert lines(event) == [line]


def test_an_invalid_spec_is_reported() -> None:
    (line,) = lines(untill="5s")
    assert line == (
        'spec: found "untill", wanted one of until, podGC, recreateAfter, expansion, '
        'admission, kubernetesVersion, events; did you mean "until"?'
    )
    (line,) = lines(until="-5s")
    assert line.startswith('spec.until: found "-5s", wanted a duration')
    (line,) = read({**scenario(), "spec": []})[1]
    assert line.endswith("spec: found a list, wanted a mapping with events")
    (line,) = read({**scenario(), "spec": {"events": 5}})[1]
    assert line.endswith("spec.events: found 5, wanted a list")


def test_another_api_version_is_reported() -> None:
    _, (line,) = read({**scenario(), "apiVersion": "bayplan.dev/v2"})
    assert 'apiVersion: found "bayplan.dev/v2", wanted bayplan.dev/v1alpha1' in line


def test_all_problems_are_reported_at_once() -> None:
    assert len(lines({"at": "x", "crate": []}, {"at": "y"}, until="z", what=1)) == 5


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["at", "create", "patch", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(VALUES, VALUES)
def test_no_scenario_raises_an_exception(events: Any, until: Any) -> None:
    found, _ = read({**scenario(), "spec": {"events": events, "until": until}})
    assert all(action.at_seconds >= 0 for action in found.actions)
