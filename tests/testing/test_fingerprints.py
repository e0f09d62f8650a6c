"""Equal content has equal fingerprints."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from bayplan.testing import cluster
from bayplan.testing.fingerprints import columns_of, fingerprint


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


@dataclass
class Holder:
    value: Any
    other: Any = None
    more: dict[str, Any] = field(default_factory=dict[str, Any])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 2),
        ("1", 1),
        ([1, 2], [2, 1]),
        ({1: 2}, {1: 3}),
        ({1, 2}, {1}),
        ((), []),
        (np.zeros(2), np.zeros(3)),
        (np.zeros(2), np.zeros(2, np.int32)),
        (Slotted(1), Slotted(2)),
        (Holder([1]), Holder([1], 2)),
        ({"a": Slotted([1])}, {"a": Slotted([2])}),
    ],
)
def test_different_content_has_different_fingerprints(one: Any, other: Any) -> None:
    assert fingerprint(Holder(one)) != fingerprint(Holder(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({1, 2}, {2, 1}),
        (np.arange(3), np.arange(3)),
        (Slotted([1]), Slotted([1])),
        (lambda: 1, lambda: 2),
    ],
)
def test_equal_content_has_one_fingerprint(one: Any, other: Any) -> None:
    assert fingerprint(Holder(one)) == fingerprint(Holder(other))


def test_a_cyclic_value_has_a_fingerprint() -> None:
    ring = Holder(1)
    ring.other = ring
    assert fingerprint(ring) == fingerprint(ring)


def test_excluded_attributes_do_not_count() -> None:
    assert fingerprint(Holder(1, 2), ["other"]) == fingerprint(Holder(1, 3), ["other"])


def test_columns_of_a_table_are_included_at_any_depth() -> None:
    result = columns_of(cluster(2, 3).cache.table)
    assert ".resources.pod_counts" in result
    assert any("requested.columns" in path for path in result)
    assert any("placed_terms" in path for path in result)


def test_excluded_objects_do_not_count_at_any_depth() -> None:
    shared: list[int] = [1]
    one = Holder(Holder(shared), shared)
    before = fingerprint(one, ["other"])
    shared.append(2)
    assert fingerprint(one, ["other"]) == before
