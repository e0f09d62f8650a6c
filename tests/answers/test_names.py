"""The order of names, and the suffix that they share."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.answers.names import common_suffix, in_natural_order, listed_names


@pytest.mark.parametrize(
    "names",
    [
        ["n2", "n10"],
        ["a10", "z9"],
        ["ip-10-0-2-9", "ip-10-0-2-101", "ip-10-0-11-1"],
        ["r2/n1", "r10/n1"],
        ["a", "a1", "a1b", "b"],
        ["", "0", "a"],
    ],
)
def test_numbers_within_names_are_ordered_as_numbers(names: list[str]) -> None:
    assert in_natural_order(reversed(names)) == names


@given(st.lists(st.text(alphabet="ab019-.", max_size=6)))
def test_every_list_of_names_has_one_order(names: list[str]) -> None:
    assert in_natural_order(names) == in_natural_order(reversed(names))


AWS = ".eu-west-1.compute.internal"


@pytest.mark.parametrize(
    ("names", "suffix"),
    [
        ([f"ip-10-0-2-1{AWS}", f"ip-10-0-2-2{AWS}"], AWS),
        ([f"ip-1{AWS}", "ip-2.us-east-1.compute.internal"], ".compute.internal"),
        ([f"ip-1{AWS}", f"ip-2{AWS}", "no node", ""], AWS),
        ([f"ip-1{AWS}"], ""),
        ([f"ip-1{AWS}", "gpu-1.example.com"], ""),
        (["10.0.0.1", "10.0.0.2"], ""),
        (["a.b.c", "d.b.c"], ""),
        (["same.example.com", "x.same.example.com"], ".example.com"),
    ],
)
def test_the_suffix_begins_at_a_dot_and_is_that_of_all_names_with_dots(
    names: list[str], suffix: str
) -> None:
    assert common_suffix(names) == suffix


def test_a_long_list_says_how_many_follow() -> None:
    assert listed_names(["a", "b"]) == "a, b"
    assert listed_names(list("abcdefg")) == "a, b, c, d, e and 2 more"
