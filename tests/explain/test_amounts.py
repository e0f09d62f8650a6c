"""Amounts are written in Kubernetes' notation."""

import pytest

from bayplan.explain.amounts import amount_text, rounded_down, short_text


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", 500, "500m"),
        ("cpu", 2000, "2"),
        ("memory", 2**30, "1Gi"),
        ("memory", 1536 * 2**20, "1536Mi"),
        ("memory", 1000, "1000"),
        ("example.com/gpu", 4, "4"),
    ],
)
def test_an_amount_is_exact(resource: str, amount: int, text: str) -> None:
    assert amount_text(resource, amount) == text


def test_an_amount_for_readers_is_rounded() -> None:
    assert short_text("memory", 123_456_789_012) == "115Gi"
    assert rounded_down("memory", 123_456_789) == 117 * 2**20
    assert rounded_down("cpu", 123) == 123
