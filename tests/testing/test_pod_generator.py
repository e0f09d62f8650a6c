"""Drawing one field of a pod again changes that field only."""

import pytest

from bayplan.rng import stream
from bayplan.testing import api_pod, pod
from bayplan.testing.generators import (
    FIELD_DRAWS,
    Draws,
    draw_field,
    draw_placed_pod,
    draw_pod,
    draw_variant,
)


def draws(name: str) -> Draws:
    return Draws(stream(1, name))


def test_every_drawn_pod_compiles() -> None:
    drawn = draws("all")
    for _ in range(200):
        assert not pod("p", **draw_pod(drawn, probability=0.8)).shape.errors


@pytest.mark.parametrize("path", FIELD_DRAWS)
def test_a_field_that_is_drawn_again_can_differ(path: str) -> None:
    drawn = draws(path)
    options = draw_field(drawn, path, {})
    variants = {repr(api_pod("p", **draw_field(drawn, path, options))) for _ in range(30)}
    assert len(variants) > 1


def test_a_variant_differs_in_one_option() -> None:
    drawn = draws("variants")
    options = draw_pod(drawn)
    for _ in range(50):
        variant = draw_variant(drawn, options)
        names = {*options, *variant}
        assert len([n for n in names if options.get(n) != variant.get(n)]) <= 1


@pytest.mark.parametrize("path", ["spec.hostNetwork", "spec.affinity.podAffinity"])
def test_removing_a_field_removes_no_other_field(path: str) -> None:
    drawn = draws("taken away")
    options = draw_pod(drawn, probability=1.0)
    holder, _, field = path.rpartition(".")
    holder = holder.rpartition(".")[2]
    seen: set[bool] = set()
    for _ in range(40):
        variant = draw_field(drawn, path, options)
        remaining, expected = ({**each.get(holder, {})} for each in (variant, options))
        seen.add(field in remaining)
        remaining.pop(field, None)
        expected.pop(field)
        assert remaining == expected
    assert seen == {True, False}


def test_placed_pods_are_not_gated_and_some_terminate() -> None:
    drawn = draws("placed")
    placed = [draw_placed_pod(drawn) for _ in range(100)]
    assert not any("gates" in options for options in placed)
    assert any(options.get("terminating") for options in placed)
