"""Amounts are written in Kubernetes' notation."""

import pytest

from bayplan.answers.amounts import amount_text, rounded_down, short_text


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", 500, "500m"),
        ("cpu", 2000, "2"),
        ("memory", 2**30, "1Gi"),
        ("memory", 1536 * 2**20, "1536Mi"),
        ("memory", 1000, "1000"),
        ("memory", 2**40, "1Ti"),
        ("hugepages-2Mi", 2**22, "4Mi"),
        ("example.com/gpu", 4, "4"),
    ],
)
def test_an_amount_is_exact(resource: str, amount: int, text: str) -> None:
    assert amount_text(resource, amount) == text


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("memory", 123_456_789_012, "115Gi"),
        ("memory", 15_667 * 2**20, "15.3Gi"),
        ("memory", 16_393_220 * 2**10, "15.7Gi"),
        ("memory", 1536 * 2**20, "1536Mi"),
        ("memory", 1023, "1023"),
        ("cpu", 250, "250m"),
        ("cpu", 9_375, "9375m"),
        ("cpu", 31_375, "31.38"),
        ("cpu", 24_050, "24.05"),
        ("cpu", 99_995, "100"),
        ("cpu", 123_456_000, "123456"),
        ("cpu", 1_234_567, "1234.6"),
        ("cpu", 4_000_000, "4000"),
        ("example.com/gpu", 1_234_567, "1,234,567"),
    ],
)
def test_a_long_amount_is_rounded_up_for_readers(resource: str, amount: int, text: str) -> None:
    assert short_text(resource, amount) == text


def test_a_smaller_amount_is_in_whole_units() -> None:
    assert rounded_down("memory", 123_456_789) == 117 * 2**20
    assert rounded_down("cpu", 123) == 123
