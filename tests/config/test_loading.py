"""A configuration from text, with all its problems."""

import json

import pytest

from bayplan.config import ConfigError, SchedulerConfig, config_from, load_config

HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
HEAD_YAML = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def refusal(text: str | bytes) -> str:
    with pytest.raises(ConfigError) as caught:
        load_config(text, "some.yaml")
    return str(caught.value)


@pytest.mark.parametrize("text", [HEAD_YAML, HEAD_YAML.encode(), json.dumps(HEAD)])
def test_yaml_and_json_are_read(text: str | bytes) -> None:
    config = load_config(text, "some.yaml")
    assert config.problems == ()
    assert config.source == "some.yaml"
    assert config.spec == SchedulerConfig().spec
    assert config.text == (text if isinstance(text, str) else text.decode())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\na: 2", 'some.yaml: line 2: key "a" is given twice'),
        ("a: [", "some.yaml: line 2: while parsing a flow node"),
        ('{"a": 1, "a": 2}', 'some.yaml: key "a" is given twice'),
        ("", "some.yaml: no documents; wanted one KubeSchedulerConfiguration"),
        ("a: 1\n---\nb: 1", "some.yaml: 2 documents; wanted one KubeSchedulerConfiguration"),
        (b"\xff", "some.yaml: line 1: not UTF-8"),
    ],
)
def test_text_that_does_not_parse_is_refused(text: str | bytes, message: str) -> None:
    assert refusal(text).startswith(message)


def test_a_problem_of_a_field_is_reported_without_its_consequences() -> None:
    config = config_from(
        HEAD
        | {
            "podInitialBackoffSeconds": "x",
            "podMaxBackoffSeconds": 0,
            "profiles": [{"plugins": {"score": {"enabled": [3, {"nam": "A"}]}}}],
        }
    )
    assert [str(problem) for problem in config.problems] == [
        'podInitialBackoffSeconds: "x"; wanted an integer',
        "profiles[0].plugins.score.enabled[0]: 3; wanted a mapping",
        'profiles[0].plugins.score.enabled[1].nam: unknown field; did you mean "name"?',
        "podMaxBackoffSeconds: 0; wanted podInitialBackoffSeconds, 1, or more",
        "profiles[0].plugins.score.enabled[1].name: missing; wanted the name of a plugin",
    ]


def test_problems_of_gates_are_reported_beside_all_other_problems() -> None:
    config = load_config(
        HEAD_YAML + "parallelism: 0\nfeatureGates: {OpportunisticBatchin: true, NodeSwap: 1}",
        "",
        feature_gates="Foo=true,AllBeta=x",
    )
    assert [problem.path for problem in config.problems] == [
        "parallelism",
        "featureGates.NodeSwap",
        "--feature-gates.AllBeta",
        "featureGates.OpportunisticBatchin",
        "--feature-gates.Foo",
    ]


def test_the_written_fields_are_remembered() -> None:
    assert config_from(HEAD | {"parallelism": 16}).written == {"apiVersion", "kind", "parallelism"}
    assert config_from(None).written == frozenset()


def test_the_default_configuration_has_upstreams_values() -> None:
    config = SchedulerConfig()
    assert config.pod_initial_backoff_seconds == 1
    assert config.pod_max_backoff_seconds == 10
    assert config.gate("SchedulerPopFromBackoffQ")
    assert not config.problems
