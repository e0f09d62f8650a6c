"""Quantities and resources as the API server checks them."""

import pytest

from bayplan.adapters.embedded.resource_validation import overhead, quantities, requirements
from bayplan.api.objects import ContainerResourceClaim, Quantities, ResourceRequirements


def paths(problems: object) -> list[str]:
    return [problem.path for problem in problems]  # type: ignore[attr-defined]


def test_a_node_may_have_any_resource() -> None:
    assert paths(quantities({"cpu": "4", "gpu": "1", "pods": "110"}, "s")) == []
    assert paths(quantities({"cpu": "4x", "pods": "1.5"}, "s")) == ["s.cpu", "s[pods]"]
    assert paths(quantities(None, "s")) == []


@pytest.mark.parametrize(
    ("requests", "limits", "refused"),
    [
        ({"cpu": "1"}, {"cpu": "2"}, []),
        ({"cpu": "2"}, {"cpu": "1"}, ["r.requests"]),
        ({"nvidia.com/gpu": 1}, None, ["r.limits"]),
        ({"nvidia.com/gpu": 1}, {"nvidia.com/gpu": 2}, ["r.requests"]),
        ({"gpu": 1}, None, ["r.requests[gpu]", "r.requests[gpu]"]),
        ({"memroy": "1Gi"}, None, ["r.requests[memroy]", "r.requests[memroy]"]),
        ({"storage": "1Gi"}, None, ["r.requests[storage]"]),
        ({"hugepages-2Mi": "4Mi"}, {"hugepages-2Mi": "4Mi"}, ["r"]),
        ({"hugepages-2Mi": "4Mi", "cpu": 1}, {"hugepages-2Mi": "4Mi"}, []),
        ({"hugepages-2Mi": "4Mi", "cpu": 1}, None, ["r.limits"]),
        ({"hugepages-2Mi": "3Mi", "cpu": 1}, None, ["r.limits", "r.requests[hugepages-2Mi]"]),
        (
            {"requests.example.com/gpu": 1},
            None,
            ["r.requests[requests.example.com/gpu]", "r.limits"],
        ),
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
    assert 'did you mean "memory"?' in " ".join(map(str, requirements(resources, "r")))


def test_pod_level_requests_are_limited_to_cpu_and_memory() -> None:
    resources = ResourceRequirements(requests={"cpu": "1", "example.com/a": 1})
    [problem, limit] = requirements(resources, "r", of_pod=True)
    assert limit.path == "r.limits"
    assert str(problem) == (
        'r.requests[example.com/a]: Unsupported value: "example.com/a": supported values: "cpu", '
        '"hugepages-", "memory"'
    )


def test_overhead_is_validated_as_containers_are() -> None:
    assert paths(overhead({"cpu": "-1"}, "o")) == ["o.limits[cpu]"]
    assert paths(overhead(None, "o")) == []


def test_what_a_server_has_stored_may_lack_limits_and_claims() -> None:
    claims = (ContainerResourceClaim(name="gone"),)
    resources = ResourceRequirements(requests={"nvidia.com/gpu": 1}, claims=claims)
    assert paths(requirements(resources, "r")) == ["r.limits", "r.claims[0]"]
    assert paths(requirements(resources, "r", is_new=False)) == []
