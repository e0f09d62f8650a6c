"""Invalid claims of devices are refused with the actual and the expected value."""

from typing import Any

import pytest

from bayplan.adapters.embedded.api_validation import problems
from tests.plugins.devices_kit import claim, class_of, exactly, first_of

Json = dict[str, Any]
CLAIM, TEMPLATE, CLASS = "ResourceClaim", "ResourceClaimTemplate", "DeviceClass"


def problems_of(kind: str, content: Json) -> list[str]:
    whole = {"apiVersion": "resource.k8s.io/v1", "kind": kind, **content}
    return [str(each) for each in problems(whole)]


def of_requests(*requests: Json, **devices: Any) -> list[str]:
    """The problems of a claim with these requests, without the common path."""
    texts = problems_of(CLAIM, claim("c", *requests, **devices))
    return [text.removeprefix("spec.devices.") for text in texts]


DNS = "a DNS name: lower case letters, digits, '-' and '.', at most 253"
LABEL = "a DNS label: lower case letters, digits and '-', at most 63"
SYNTAX = ["device.driver =="]


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        ({"name": "r"}, "requests[0]: found nothing, wanted one of exactly and firstAvailable"),
        (
            {**exactly(), **first_of("r", a={})},
            'requests[0]: found "both", wanted one of exactly and firstAvailable',
        ),
        (exactly("B_b"), f'requests[0].name: found "B_b", wanted {LABEL}'),
        (
            exactly(class_name=""),
            f"requests[0].exactly.deviceClassName: found nothing, wanted {DNS}",
        ),
        (
            exactly(allocationMode="Al"),
            (
                'requests[0].exactly.allocationMode: Unsupported value: "Al": supported values: '
                '"ExactCount", "All"; did you mean "All"?'
            ),
        ),
        (exactly(count=-1), "requests[0].exactly.count: found -1, wanted more than nothing"),
        (
            exactly(allocationMode="All"),
            "requests[0].exactly.count: found 1, wanted nothing beside allocationMode All",
        ),
        (
            exactly(capacity={"requests": {"memory": "x"}}),
            (
                'requests[0].exactly.capacity.requests.memory: found "x", '
                "wanted a quantity such as 500m, 2 or 1Gi"
            ),
        ),
        (
            first_of("r", big={"count": -1}),
            "requests[0].firstAvailable[0].count: found -1, wanted more than nothing",
        ),
    ],
)
def test_an_invalid_device_request_is_refused(request_: Json, text: str) -> None:
    assert of_requests(request_) == [text]


def test_an_expression_that_does_not_compile_is_reported_in_one_line() -> None:
    (text,) = of_requests(exactly(expressions=SYNTAX))
    place = "requests[0].exactly.selectors[0].cel.expression"
    start = f'{place}: found "device.driver ==", wanted an expression about a device (compilation'
    assert text.startswith(start)
    assert "\n" not in text


def test_names_are_unique_and_constraints_name_requests() -> None:
    constraint = {"requests": ["aa", "b/x"], "matchAttribute": "example.com/a"}
    requests = exactly("a"), exactly("a"), first_of("b", x={})
    assert of_requests(*requests, constraints=[constraint]) == [
        'requests[1].name: found "a", wanted each name once',
        (
            'constraints[0].requests[0]: found "aa", wanted the name of a request of the claim; '
            'did you mean "a"?'
        ),
    ]


def test_a_template_is_validated_as_its_claims_are() -> None:
    def of(spec: Any) -> list[str]:
        return problems_of(TEMPLATE, {"metadata": {"name": "t"}, "spec": spec})

    devices = {"devices": {"requests": [exactly(count=-1)]}}
    place = "spec.spec.devices.requests[0].exactly.count"
    assert of({"spec": devices}) == [f"{place}: found -1, wanted more than nothing"]
    assert of(3) == ["spec.spec: found nothing, wanted the spec of the claims that it makes"]
    (text,) = of({"spec": {"devices": "none"}})
    assert text.startswith('spec.spec.devices: found "none"')


def test_a_class_contains_expressions_about_devices() -> None:
    assert problems_of(CLASS, class_of("gpu", "device.driver == 'x'")) == []
    place = "spec.selectors[0].cel.expression"
    (text,) = problems_of(CLASS, class_of("gpu", "1 + 1"))
    assert text.startswith(f'{place}: found "1 + 1", wanted an expression about a device (must')
    empty = {"metadata": {"name": "gpu"}, "spec": {"selectors": [{}]}}
    assert problems_of(CLASS, empty) == [
        f"{place}: found nothing, wanted an expression about a device"
    ]


def test_a_valid_claim_is_accepted() -> None:
    bare = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    assert of_requests(bare, exactly("s", count=2), first_of("t", big={"count": 2}, small={})) == []
    everything = {"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}}
    assert of_requests(everything) == []
