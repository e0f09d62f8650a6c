"""Quantities and resources as the API server checks them."""

import pytest

from bayplan.adapters.embedded.pod_validation import overhead, quantities, requirements
from bayplan.api.objects import Quantities, ResourceRequirements


def paths(problems: object) -> list[str]:
    return [problem.path for problem in problems]  # type: ignore[attr-defined]


@pytest.mark.parametrize("value", ["500m", "1Gi", 2, 0.5, "1e3", "0"])
def test_valid_quantities_are_accepted(value: str | float) -> None:
    assert list(quantities({"cpu": value}, "")) == []


@pytest.mark.parametrize(
    ("value", "resource", "message"),
    [
        ("1x", "cpu", 'q.cpu: found "1x", wanted a quantity such as 500m, 2 or 1Gi'),
        ("", "cpu", "q.cpu: found nothing, wanted a quantity such as 500m, 2 or 1Gi"),
        ("-1Gi", "memory", 'q.memory: found "-1Gi", wanted a quantity that is not negative'),
        ("1.5", "nvidia.com/gpu", 'q.nvidia.com/gpu: found "1.5", wanted a whole number of them'),
        (float("inf"), "cpu", "q.cpu: found Infinity, wanted a quantity such as 500m, 2 or 1Gi"),
    ],
)
def test_invalid_quantities_are_refused_with_a_message(
    value: str | float, resource: str, message: str
) -> None:
    assert [str(problem) for problem in quantities({resource: value}, "q")] == [message]


def test_a_node_may_have_any_resource() -> None:
    assert paths(quantities({"cpu": "4", "gpu": "1", "pods": "110"}, "s")) == []
    assert paths(quantities({"cpu": "4x", "pods": "1.5"}, "s")) == ["s.cpu", "s.pods"]
    assert paths(quantities(None, "s")) == []


@pytest.mark.parametrize(
    ("requests", "limits", "refused"),
    [
        ({"cpu": "1"}, {"cpu": "2"}, []),
        ({"cpu": "2"}, {"cpu": "1"}, ["r.requests.cpu"]),
        ({"nvidia.com/gpu": 1}, None, []),
        ({"nvidia.com/gpu": 1}, {"nvidia.com/gpu": 2}, ["r.requests.nvidia.com/gpu"]),
        ({"gpu": 1}, None, ["r.requests"]),
        ({"memroy": "1Gi"}, None, ["r.requests"]),
        ({"storage": "1Gi"}, None, ["r.requests"]),
        ({"hugepages-2Mi": "4Mi", "ephemeral-storage": "1Gi"}, None, []),
        ({"hugepages-2Mi": "3Mi"}, None, ["r.requests.hugepages-2Mi"]),
        ({"hugepages-big": "3Mi"}, None, ["r.requests.hugepages-big"]),
        ({"requests.example.com/gpu": 1}, None, ["r.requests"]),
        ({"a b/c": 1}, None, ["r.requests"]),
        ({"kubernetes.io/batteries": 1}, None, []),
    ],
)
def test_containers_request_existing_resources_within_limits(
    requests: Quantities, limits: Quantities | None, refused: list[str]
) -> None:
    resources = ResourceRequirements(requests=requests, limits=limits)
    assert paths(requirements(resources, "r")) == refused


def test_a_misspelled_resource_is_reported_with_the_nearest_name() -> None:
    resources = ResourceRequirements(requests={"memroy": "1Gi"})
    assert 'did you mean "memory"?' in str(next(iter(requirements(resources, "r"))))


def test_pod_level_requests_are_limited_to_cpu_and_memory() -> None:
    resources = ResourceRequirements(requests={"cpu": "1", "nvidia.com/gpu": 1, "hugepages-2Mi": 0})
    assert paths(requirements(resources, "r", of_pod=True)) == ["r.requests"]


def test_overhead_is_validated_as_containers_are() -> None:
    assert paths(overhead({"cpu": "-1"}, "o")) == ["o.cpu"]
    assert paths(overhead(None, "o")) == []
