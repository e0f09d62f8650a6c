"""Defaults of claims and templates."""

from typing import Any

from bayplan.adapters.device_defaults import claim, template

TOLERATION = {"key": "a", "value": "b"}
SPEC: dict[str, Any] = {
    "devices": {
        "requests": [
            {"name": "a", "exactly": {"deviceClassName": "gpu", "tolerations": [TOLERATION]}},
            {"name": "b", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}},
            {"name": "c", "firstAvailable": [{"name": "x", "deviceClassName": "gpu", "count": 2}]},
        ]
    }
}
FILLED: dict[str, Any] = {
    "devices": {
        "requests": [
            {
                "name": "a",
                "exactly": {
                    "deviceClassName": "gpu",
                    "tolerations": [{"operator": "Equal", **TOLERATION}],
                    "allocationMode": "ExactCount",
                    "count": 1,
                },
            },
            {"name": "b", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}},
            {
                "name": "c",
                "firstAvailable": [
                    {
                        "name": "x",
                        "deviceClassName": "gpu",
                        "count": 2,
                        "allocationMode": "ExactCount",
                    }
                ],
            },
        ]
    }
}


def test_a_request_is_for_one_device_unless_it_says_otherwise() -> None:
    assert claim({"spec": SPEC}) == {"spec": FILLED}


def test_a_template_has_the_defaults_of_its_claims() -> None:
    assert template({"spec": {"spec": SPEC}}) == {"spec": {"spec": FILLED}}


def test_what_asks_for_nothing_stays_as_it_is() -> None:
    assert claim({"spec": {"devices": {}}}) == {"spec": {"devices": {}}}
