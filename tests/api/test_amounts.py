"""Amounts are printed as the API server prints them."""

import pytest

from bayplan.api.amounts import amount_of, amounts_of, canonical, largest, total


@pytest.mark.parametrize(
    ("quantity", "text"),
    [
        ("1500m", "1500m"),
        ("1.5", "1500m"),
        ("1500000", "1500k"),
        ("0.5Gi", "512Mi"),
        ("1536Mi", "1536Mi"),
        ("1024", "1024"),
        ("0.5Ki", "512"),
        ("1500e3", "1500e3"),
        ("1E3", "1e3"),
        ("1E", "1E"),
        ("0Gi", "0"),
        ("-1Gi", "-1Gi"),
        (2, "2"),
        ("0.1", "100m"),
        ("1n", "1n"),
    ],
)
def test_an_amount_has_a_canonical_text(quantity: str | int, text: str) -> None:
    assert canonical(quantity) == text


def test_a_sum_has_the_form_of_its_first_addend_that_is_not_zero() -> None:
    assert str(amount_of("0").plus(amount_of("1Gi"))) == "1Gi"
    assert str(amount_of("1Gi").plus(amount_of("1048576k"))) == "2024Mi"
    assert str(amount_of("1k").plus(amount_of("1Ki"))) == "2024"


def test_lists_are_added_and_compared_by_resource() -> None:
    one, other = amounts_of({"cpu": "1", "memory": "1Gi"}), amounts_of({"cpu": "1500m"})
    assert {n: str(a) for n, a in total((one, other)).items()} == {"cpu": "2500m", "memory": "1Gi"}
    assert str(largest((one, other))["cpu"]) == "1500m"
