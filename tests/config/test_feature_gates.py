"""Feature gates: upstream's names, stages and defaults, and the rules for setting them."""

import json

import pytest

from bayplan.config.feature_gates import (
    ALPHA,
    BETA,
    default_gates,
    every_gate_of,
    gate_names_of,
    gates_of,
    other_gates_of,
    parse_gates,
    resolve_gates,
)
from bayplan.config.kubernetes_versions import NEWEST, KubernetesVersion, version_of_release
from tests.parity.gate_refusals import RECORD, alone


def resolved(**values: bool) -> tuple[dict[str, bool], list[str]]:
    gates, problems = resolve_gates(("featureGates", values))
    return dict(gates.values), [str(problem) for problem in problems]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SchedulerPopFromBackoffQ", True),
        ("OpportunisticBatching", True),
        ("SchedulerAsyncPreemption", True),
        ("NodeDeclaredFeatures", True),
        ("StorageCapacityScoring", True),
        ("GenericWorkload", False),
        ("SchedulerAsyncAPICalls", False),
        ("DRAFractionalCapacityRange", False),
    ],
)
def test_defaults_are_upstreams(name: str, value: bool) -> None:
    assert default_gates().enabled(name) is value


@pytest.mark.parametrize("version", KubernetesVersion)
def test_every_gate_has_one_row_in_each_version(version: KubernetesVersion) -> None:
    gates, others = gates_of(version), other_gates_of(version)
    assert not others.keys() & gates.keys()
    assert len(gate_names_of(version)) == len(gates) + len(others) + 3


def test_a_needed_gate_exists_in_some_version() -> None:
    known = {name for version in KubernetesVersion for name in every_gate_of(version)}
    needed = {
        n for v in KubernetesVersion for gate in every_gate_of(v).values() for n in gate.needs
    }
    assert needed <= known


def test_a_gate_is_set_by_its_name_or_its_alias() -> None:
    assert resolved(SchedulerPopFromBackoffQ=False)[0]["SchedulerPopFromBackoffQ"] is False
    values, problems = resolved(SchedulerOpportunisticBatching=False)
    assert values["OpportunisticBatching"] is False
    assert not problems


def test_the_nearest_scheduler_gate_is_suggested() -> None:
    assert resolved(OpportunisticBatchin=True)[1] == [
        (
            "featureGates.OpportunisticBatchin: unrecognized feature gate: OpportunisticBatchin; "
            'did you mean "OpportunisticBatching"?'
        )
    ]
    assert 'did you mean "GracefulNodeShutdown"?' in resolved(GracefulNodeShutdow=True)[1][0]


def test_a_locked_gate_cannot_be_changed() -> None:
    assert resolved(DynamicResourceAllocation=True)[1] == []
    assert resolved(DynamicResourceAllocation=False)[1] == [
        (
            "featureGates.DynamicResourceAllocation: cannot set feature gate "
            "DynamicResourceAllocation to false, feature is locked to true"
        )
    ]


def test_a_gate_requires_other_gates() -> None:
    assert resolved(PodGroupPreemptionPolicy=True)[1] == [
        (
            "featureGates.PodGroupPreemptionPolicy: PodGroupPreemptionPolicy is enabled, but "
            "depends on features that are disabled: [GenericWorkload]"
        )
    ]
    assert resolved(PodGroupPreemptionPolicy=True, GenericWorkload=True)[1] == []


@pytest.mark.parametrize("release", json.loads(RECORD.read_text()))
def test_kube_scheduler_refuses_the_same_settings_in_the_same_words(release: str) -> None:
    """Recorded from the binaries (`tests.parity.gate_refusals`): every gate alone, on and off, and
    drawn settings of several gates, as in `kube-scheduler --feature-gates=A=true,B=false`."""
    version = version_of_release(release)
    assert version is not None
    recorded = json.loads(RECORD.read_text())[release]

    def texts(setting: str) -> set[str]:
        _, problems = resolve_gates(("", parse_gates(setting, "")[0]), version=version)
        return {problem.actual for problem in problems}

    assert {each: texts(each) for each in alone(version) if texts(each)} == {
        each: set(refused) for each, refused in recorded["alone"].items()
    }
    for setting, refused in recorded["together"].items():
        if any(text.startswith("unrecognized") for text in refused):
            # kube-scheduler stops at the first gate that it does not know, in a random order.
            assert set(refused) <= texts(setting), setting
        else:
            assert texts(setting) == set(refused), setting


def test_a_stage_switches_all_gates_without_an_explicit_value() -> None:
    values, problems = resolved(AllBeta=False, SchedulerPopFromBackoffQ=True)
    beta = {name for name, gate in gates_of(NEWEST).items() if gate.stage == BETA}
    assert {name for name in beta if values[name]} == {"SchedulerPopFromBackoffQ"}
    assert not problems
    values, problems = resolved(AllAlpha=True, GenericWorkload=True)
    assert all(values[name] for name, gate in gates_of(NEWEST).items() if gate.stage == ALPHA)
    assert not problems


def test_a_stage_without_its_required_gates_is_named() -> None:
    paths = {line.split(":")[0] for line in resolved(AllAlpha=True)[1]}
    assert paths == {"featureGates.AllAlpha"}


def test_later_sources_override_earlier_ones() -> None:
    gates, problems = resolve_gates(
        ("featureGates", {"OpportunisticBatching": False}),
        ("--feature-gates", {"SchedulerOpportunisticBatching": True}),
    )
    assert gates.enabled("OpportunisticBatching")
    assert gates.named == ("OpportunisticBatching",)
    assert not problems


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", {}),
        ("A=true", {"A": True}),
        ("A=true,B=false", {"A": True, "B": False}),
        (" A = 1 ,, B=F,", {"A": True, "B": False}),
        ("A=true,A=false", {"A": False}),
        ("kube:A=true, kube : B=false", {"A": True, "B": False}),
    ],
)
def test_the_flag_has_gos_syntax(text: str, values: dict[str, bool]) -> None:
    assert parse_gates(text, "--feature-gates") == (values, [])


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("A=maybe", '--feature-gates.A: "maybe"; wanted true or false'),
        ("A", "--feature-gates.A: no value; wanted true or false"),
        ("A=yes", '--feature-gates.A: "yes"; wanted true or false'),
        (
            "wardle:A=true",
            '--feature-gates.wardle:A: unknown component "wardle"; wanted kube, or no component',
        ),
    ],
)
def test_a_value_that_is_not_a_boolean_is_refused(text: str, complaint: str) -> None:
    values, problems = parse_gates(f"B=true,{text}", "--feature-gates")
    assert values == {"B": True}
    assert [str(problem) for problem in problems] == [complaint]
