"""The message about a field of the wrong type."""

from typing import Any

import pytest

from bayplan.adapters.embedded.api_validation import of_decoding
from bayplan.api.objects import DecodeError, decode
from tests.kit.manifests import pod


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (
            pod(priority="high"),
            'spec.priority: found "high", wanted a whole number',
        ),
        (
            pod(containers={"name": "c"}),
            "spec.containers: found a mapping, wanted a list",
        ),
        (
            pod(tolerations=[{"operator": 7}]),
            "spec.tolerations[0].operator: found 7, wanted a string; quote it",
        ),
        (
            pod(labels={"app": "a", "team": 1}),
            "metadata.labels.team: found 1, wanted a string; quote it",
        ),
    ],
)
def test_a_wrong_type_has_the_same_message_for_each_kind(content: Any, text: str) -> None:
    with pytest.raises(DecodeError) as failure:
        decode("v1 Pod", content)
    assert str(of_decoding(failure.value, content)) == text


def test_a_quantity_of_a_wrong_type_is_named_by_its_resource() -> None:
    calls = {"memory": "1Gi", "cpu": ["1"]}
    content = pod(containers=[{"name": "c", "resources": {"requests": calls}}])
    with pytest.raises(DecodeError) as failure:
        decode("v1 Pod", content)
    problem = of_decoding(failure.value, content)
    assert problem.path == "spec.containers[0].resources.requests.cpu"
    assert problem.actual.startswith("found a list, wanted a")


def test_a_message_without_a_place_is_passed_on() -> None:
    assert str(of_decoding(DecodeError("v1 Pod: too deep"), {})) == "too deep"
