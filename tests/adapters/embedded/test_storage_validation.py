"""Invalid volumes, claims and classes are refused with the actual and the expected value."""

from typing import Any

import pytest

from bayplan.adapters.embedded.api_validation import problems
from bayplan.adapters.embedded.field_errors import NOT_A_SUBDOMAIN

Json = dict[str, Any]


def problems_of(kind: str, **fields: Any) -> list[str]:
    version, _, word = kind.rpartition(" ")
    content = {"apiVersion": version, "kind": word, "metadata": {"name": "x"}, **fields}
    return [str(each) for each in problems(content)]


MODES = '"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"'
TERM = {"matchExpressions": [{"key": "a", "operator": "Nope"}]}


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (
            {"accessModes": ["ReadWriteOnc"]},
            (
                f'spec.accessModes: Unsupported value: "ReadWriteOnc": supported values: {MODES}; '
                'did you mean "ReadWriteOnce"?'
            ),
        ),
        (
            {"accessModes": ["ReadWriteOncePod", "ReadOnlyMany"]},
            "spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes",
        ),
        (
            {"resources": {"requests": {"storage": "lots"}}},
            (
                'spec.resources.requests.storage: found "lots", '
                "wanted a quantity such as 500m, 2 or 1Gi"
            ),
        ),
        (
            {"resources": {"requests": {"storage": 0}}},
            'spec.resources[storage]: Invalid value: "0": must be greater than zero',
        ),
        (
            {"selector": {"matchExpressions": [{"key": "a", "operator": "Inn"}]}},
            (
                'spec.selector.matchExpressions[0].operator: Invalid value: "Inn": '
                'not a valid selector operator; did you mean "In"?'
            ),
        ),
        (
            {"storageClassName": "Fast!"},
            f'spec.storageClassName: Invalid value: "Fast!": {NOT_A_SUBDOMAIN}',
        ),
        (
            {"volumeMode": "Blok"},
            (
                'spec.volumeMode: Unsupported value: "Blok": supported values: "Block", '
                '"Filesystem"; did you mean "Block"?'
            ),
        ),
    ],
)
def test_an_invalid_claim_is_refused(spec: Json, text: str) -> None:
    assert problems_of("v1 PersistentVolumeClaim", spec=spec) == [text]


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (
            {"capacity": {"storage": "-1Gi"}},
            ('spec.capacity[storage]: Invalid value: "-1Gi": must be greater than zero'),
        ),
        ({"capacity": 7}, "spec.capacity: found 7, wanted a mapping"),
        (
            {"nodeAffinity": {"required": {"nodeSelectorTerms": [TERM]}}},
            (
                "spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].operator: "
                'Invalid value: "Nope": not a valid selector operator'
            ),
        ),
    ],
)
def test_an_invalid_volume_is_refused(spec: Json, text: str) -> None:
    assert problems_of("v1 PersistentVolume", spec=spec) == [text]


def test_a_name_of_another_object_may_be_any() -> None:
    """No object has such a name; the API server accepts the reference."""
    assert problems_of("v1 PersistentVolumeClaim", spec={"volumeName": "No/No"}) == []
    reference = {"name": "A B", "namespace": "NO_NO"}
    assert problems_of("v1 PersistentVolume", spec={"claimRef": reference}) == []


def test_a_binding_mode_is_immediate_or_wait_for_first_consumer() -> None:
    assert problems_of("storage.k8s.io/v1 StorageClass", volumeBindingMode="Late") == [
        (
            'volumeBindingMode: Unsupported value: "Late": supported values: "Immediate", '
            '"WaitForFirstConsumer"'
        )
    ]
