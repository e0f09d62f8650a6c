"""What a pod requests: compared with exact fractions, and one example for each rule."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.api.objects import POD, Pod, decode
from bayplan.api.pod_requests import (
    NON_ZERO_DEFAULTS,
    PodRules,
    all_containers,
    amounts,
    is_counted,
    is_extended,
    is_pod_level,
    is_scalar,
    may_be_devices,
    requested,
)
from bayplan.api.quantity import INT64_MAX, QuantityError

MIB = 1024 * 1024
Wire = dict[str, Any]


def pod_with_spec(status: Wire | None = None, **spec: Any) -> Pod:
    pod = decode(POD, {"metadata": {"name": "p"}, "spec": spec, "status": status or {}})
    assert isinstance(pod, Pod)
    return pod


def container(name: str = "c", restart: str | None = None, **requests: Any) -> Wire:
    """Requests by keyword; ``restart="Always"`` makes an init container a sidecar."""
    return {"name": name, "resources": {"requests": requests}, "restartPolicy": restart}


# ---- containers, init containers, sidecars -------------------------------------------------

#: Finer than a thousandth, so that an amount which is rounded too early changes the sum.
MICRO = st.sampled_from([0, 1, 250, 400, 999])
AMOUNTS = st.builds(lambda whole, micro: whole + Fraction(micro, 10**6), st.integers(0, 4), MICRO)
Step = tuple[bool, Fraction]


def wire(amount: Fraction) -> str:
    return f"{int(amount * 10**6)}u"


def largest_sum(containers: Sequence[Fraction], steps: Sequence[Step]) -> Fraction:
    """The largest sum of containers that run at the same time. Steps: (is a sidecar, amount)."""
    moments = [sum(containers, Fraction(0)) + sum(a for sidecar, a in steps if sidecar)]
    for number, (_, amount) in enumerate(steps):
        moments.append(amount + sum(a for sidecar, a in steps[:number] if sidecar))
    return max(moments)


@given(
    st.lists(AMOUNTS, max_size=3),
    st.lists(st.tuples(st.booleans(), AMOUNTS), max_size=4),
    AMOUNTS,
)
def test_a_pod_requests_the_largest_sum_rounded_once(
    containers: list[Fraction], steps: list[Step], overhead: Fraction
) -> None:
    result = requested(
        pod_with_spec(
            containers=[container(cpu=wire(a), memory=wire(a)) for a in containers],
            initContainers=[
                container(restart="Always" if sidecar else None, cpu=wire(a), memory=wire(a))
                for sidecar, a in steps
            ],
            overhead={"cpu": wire(overhead), "memory": wire(overhead)},
        )
    )
    total = largest_sum(containers, steps) + overhead
    assert result == {"cpu": math.ceil(total * 1000), "memory": math.ceil(total)}


@pytest.mark.parametrize(
    ("resource", "texts", "before", "since_1_38"),
    [
        pytest.param("cpu", ["1E"], 0, INT64_MAX, id="digits and an exponent"),
        pytest.param("cpu", ["9223372036854775807"], -1000, INT64_MAX, id="many digits"),
        pytest.param("memory", ["10E", "10E"], 0, INT64_MAX, id="a sum of exponents"),
        pytest.param("memory", ["100E", "1"], 100 * 10**18 + 1 - 5 * 2**64, INT64_MAX, id="a sum"),
        pytest.param("memory", ["7Ei", "7Ei"], -(2**61), INT64_MAX, id="a sum of binary amounts"),
        pytest.param("memory", ["16Ei"], INT64_MAX, INT64_MAX, id="a binary amount has a limit"),
        pytest.param("memory", ["8E"], 8 * 10**18, 8 * 10**18, id="below the limit"),
    ],
)
def test_requests_beyond_int64_stay_at_its_limit_since_1_38_and_overflow_before(
    resource: str, texts: list[str], before: int, since_1_38: int
) -> None:
    pod = pod_with_spec(containers=[container(**{resource: text}) for text in texts])
    assert requested(pod) == {resource: before}
    saturating = PodRules(large_requests_saturate=True)
    assert requested(pod, rules=saturating) == {resource: since_1_38}


# ---- pod-level requests --------------------------------------------------------------------


def test_pod_level_requests_replace_the_sum() -> None:
    level = {"requests": {"cpu": "500m", "hugepages-2Mi": "4Mi", "ephemeral-storage": 9}}
    storing = {"name": "s", "resources": {"requests": {"ephemeral-storage": 1}}}
    requesting = pod_with_spec(
        containers=[container(cpu=2, memory=5), storing],
        resources=level,
        overhead={"cpu": "100m"},
    )
    # Storage cannot be requested at pod level. Overhead is added in any case.
    expected = {"cpu": 600, "memory": 5, "ephemeral-storage": 1, "hugepages-2Mi": 4 * MIB}
    assert requested(requesting) == expected
    assert requested(requesting, pod_level=False)["cpu"] == 2100


# ---- defaults where they are scored --------------------------------------------------------


def test_containers_without_requests_count_with_the_defaults() -> None:
    silent, explicit = container(), container(cpu=0, memory=0)
    result = requested(pod_with_spec(containers=[silent, explicit]), defaults=NON_ZERO_DEFAULTS)
    assert result == {"cpu": 100, "memory": 200 * MIB}


def test_init_containers_have_defaults_too() -> None:
    requesting = pod_with_spec(
        containers=[container(cpu="50m", memory=1)], initContainers=[container()]
    )
    assert requested(requesting, defaults=NON_ZERO_DEFAULTS) == {"cpu": 100, "memory": 200 * MIB}


@pytest.mark.parametrize(
    ("containers", "level", "overhead", "cpu"),
    [
        pytest.param([{}, {}], {"memory": 1}, {}, 200, id="no request for cpu"),
        pytest.param([{}, {}], {"cpu": "1"}, {}, 1000, id="a pod-level request"),
        pytest.param(
            [{"cpu": "1"}, {}], {"memory": 1}, {}, 1000, id="a request of another container"
        ),
        pytest.param([{}, {}], {"memory": 1}, {"cpu": "1m"}, 1, id="the overhead does"),
        pytest.param([{"cpu": "1"}, {}], {}, {}, 1100, id="no pod-level requests"),
    ],
)
def test_beside_pod_level_requests_defaults_apply_to_missing_resources(
    containers: list[Wire], level: Wire, overhead: Wire, cpu: int
) -> None:
    requesting = pod_with_spec(
        containers=[container(**each) for each in containers],
        resources={"requests": level},
        overhead=overhead,
    )
    assert requested(requesting, defaults=NON_ZERO_DEFAULTS)["cpu"] == cpu


# ---- in-place resize -----------------------------------------------------------------------


def resized(reason: str = "", **more: Any) -> Pod:
    """A container that requests 2 cpu, is allocated 1 and uses 3; ``more`` fields of the status."""
    reports = {
        "name": "c",
        "allocatedResources": {"cpu": 1},
        "resources": {"requests": {"cpu": 3}},
    }
    pending = [{"type": "PodResizePending", "reason": reason}] if reason else []
    status = {"containerStatuses": [reports], "conditions": pending, **more}
    return pod_with_spec(status, containers=[container(cpu=2), container("other", cpu=5)])


def test_under_resize_the_largest_sum_counts() -> None:
    assert requested(resized()) == {"cpu": 8000}
    assert requested(resized("Deferred")) == {"cpu": 8000}


def test_an_infeasible_resize_counts_the_resources_in_the_status() -> None:
    assert requested(resized("Infeasible")) == {"cpu": 3000}


def test_sums_are_compared_not_containers() -> None:
    """Allocated 1 + 4, actuated 4 + 1, requested 2 + 2: the largest sum is 5, not 8."""
    reports = [
        {
            "name": name,
            "allocatedResources": {"cpu": got},
            "resources": {"requests": {"cpu": has}},
        }
        for name, got, has in (("a", 1, 4), ("b", 4, 1))
    ]
    requesting = [container("a", cpu=2), container("b", cpu=2)]
    assert requested(pod_with_spec({"containerStatuses": reports}, containers=requesting)) == {
        "cpu": 5000
    }


def test_the_status_of_an_init_container_is_in_its_own_list() -> None:
    reports = [{"name": "s", "allocatedResources": {"cpu": 4}}]
    requesting = pod_with_spec(
        {"initContainerStatuses": reports}, initContainers=[container("s", "Always", cpu=1)]
    )
    assert requested(requesting) == {"cpu": 4000}


def test_pod_level_amounts_of_the_status_replace_those_of_containers() -> None:
    whole = {"allocatedResources": {"cpu": 9}, "resources": {"requests": {"cpu": 4}}}
    assert requested(resized(**whole)) == {"cpu": 9000}
    assert requested(pod_with_spec(whole, containers=[container(cpu=2)])) == {"cpu": 9000}


@pytest.mark.parametrize(("reason", "cpu"), [("", 6000), ("Deferred", 6000), ("Infeasible", 5000)])
def test_pod_level_requests_are_resized_in_the_same_way(reason: str, cpu: int) -> None:
    pending = [{"type": "PodResizePending", "reason": reason}]
    reports = {"resources": {"requests": {"cpu": 4}}, "allocatedResources": {"cpu": 5}}
    requesting = pod_with_spec(
        {**reports, "conditions": pending}, resources={"requests": {"cpu": 6}}
    )
    assert requested(requesting) == {"cpu": cpu}


# ---- names ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "counted", "scalar", "extended", "pod_level"),
    [
        ("cpu", True, False, False, True),
        ("memory", True, False, False, True),
        ("ephemeral-storage", True, False, False, False),
        ("pods", False, False, False, False),
        ("storage", False, False, False, False),
        ("hugepages-2Mi", True, True, False, True),
        ("attachable-volumes-csi", True, True, False, False),
        ("example.com/gpu", True, True, True, False),
        ("kubernetes.io/batch", True, True, False, False),
        ("requests.example.com/gpu", False, False, False, False),
    ],
)
def test_a_name_determines_the_kind_of_its_resource(
    name: str, counted: bool, scalar: bool, extended: bool, pod_level: bool
) -> None:
    result = (is_counted(name), is_scalar(name), is_extended(name), is_pod_level(name))
    assert result == (counted, scalar, extended, pod_level)


@pytest.mark.parametrize(
    ("name", "may"),
    [
        ("example.com/gpu", True),
        ("deviceclass.resource.kubernetes.io/gpu", True),
        ("cpu", False),
        ("kubernetes.io/other", False),
    ],
)
def test_only_extended_resources_may_be_devices(name: str, may: bool) -> None:
    assert may_be_devices(name) is may


def test_cpu_is_counted_in_thousandths_and_every_other_resource_in_units() -> None:
    assert amounts({"cpu": "1.5", "memory": "1.5", "example.com/gpu": 2}) == {
        "cpu": 1500,
        "memory": 2,
        "example.com/gpu": 2,
    }
    assert amounts(None) == {}


def test_init_containers_are_named_first() -> None:
    spec = pod_with_spec(containers=[container("main")], initContainers=[container("first")]).spec
    assert [each.name for each in all_containers(spec)] == ["first", "main"]


def test_an_invalid_quantity_is_refused() -> None:
    with pytest.raises(QuantityError):
        requested(pod_with_spec(containers=[container(cpu="much")]))
