"""Which of a pod's claims are bound, which wait, and what keeps a pod from running at all."""

from typing import Any

import pytest

from bayplan.framework.status import Code, Status
from bayplan.plugins.volume_binding.claims import PodClaims, pod_claims
from bayplan.testing import node
from tests.plugins.volume_kit import claim, cluster, storage_class, with_claims

LATE = storage_class()


def found(*objects: Any, **sources: Any) -> PodClaims | Status:
    over = cluster([node("n1")], *objects)
    claims = () if sources else ("data",)
    return pod_claims(over.volumes, with_claims("p", *claims, **sources))


def names(told: PodClaims | Status) -> tuple[list[str], list[str]]:
    assert isinstance(told, PodClaims)
    return [each.name for each in told.bound], [each.name for each in told.delayed]


def test_a_bound_claim_is_bound() -> None:
    assert names(found(claim("data", bound_to="pv"))) == (["data"], [])


def test_a_claim_of_a_class_that_waits_is_delayed() -> None:
    assert names(found(claim("data"), LATE)) == ([], ["data"])


UNBOUND = "pod has unbound immediate PersistentVolumeClaims"


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        pytest.param([], 'persistentvolumeclaim "data" not found', id="no claim"),
        pytest.param(
            [claim("data", phase="Lost", volumeName="gone")],
            'persistentvolumeclaim "data" bound to non-existent persistentvolume "gone"',
            id="lost",
        ),
        pytest.param(
            [claim("data", meta={"deletionTimestamp": "2026-01-01T00:00:00Z"})],
            'persistentvolumeclaim "data" is being deleted',
            id="being deleted",
        ),
        pytest.param([claim("data"), storage_class(mode="Immediate")], UNBOUND, id="immediate"),
        pytest.param([claim("data")], UNBOUND, id="no such class"),
        pytest.param([claim("data", class_name="")], UNBOUND, id="no class"),
        pytest.param([claim("data", volumeName="pv"), LATE], UNBOUND, id="bound by half"),
    ],
)
def test_what_keeps_a_pod_waiting_is_told(objects: list[Any], reason: str) -> None:
    assert found(*objects) == Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,))


def test_a_class_without_a_mode_is_an_error() -> None:
    told = found(claim("data"), storage_class(mode=None))
    assert told == Status(Code.ERROR, ('VolumeBindingMode not set for StorageClass "late"',))


def test_an_ephemeral_claim_must_be_there_and_the_pods_own() -> None:
    scratch: Any = {"scratch": {"ephemeral": {}}}
    told = found(**scratch)
    assert isinstance(told, Status)
    assert told.message == (
        'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-scratch"'
    )
    told = found(claim("p-scratch", bound_to="pv"), **scratch)
    assert isinstance(told, Status)
    assert told.message == (
        "PVC default/p-scratch was not created for pod default/p (pod is not owner)"
    )
    owner = {"kind": "Pod", "name": "p", "uid": "uid-default/p", "controller": True}
    own = claim("p-scratch", bound_to="pv", meta={"ownerReferences": [owner]})
    assert names(found(own, **scratch)) == (["p-scratch"], [])
