"""Caching: the promises of a plugin, and the attributes that it replaces."""

from collections.abc import Hashable
from typing import Any

import pytest

from bayplan.framework.plugin import (
    Caching,
    PluginArgs,
    PreFilterPlugin,
    ScalarScorePlugin,
    SignPlugin,
)
from bayplan.state.change_log import ALL_FACETS, Facet
from bayplan.state.nodes import NodeInfo
from bayplan.state.pods import PodInfo
from bayplan.state.rejections import Code, Rejection
from bayplan.testing import plugin


class _Base(ScalarScorePlugin):
    name = "Mine"

    def score_node(self, state: Any, pod: PodInfo, node: NodeInfo) -> int:
        return 0


class _Signs(SignPlugin):
    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return ()


def test_a_plugin_that_does_not_sign_promises_nothing() -> None:
    class Mine(_Base): ...

    assert Mine.caching is None
    assert plugin(Mine).promises == Caching()


def test_a_plugin_that_signs_is_cached_and_depends_on_all_of_a_node() -> None:
    class Mine(_Base, _Signs): ...

    assert Mine.caching == Caching(facets=ALL_FACETS)


def test_caching_none_means_that_nothing_is_cached() -> None:
    class Mine(_Base, _Signs):
        caching = None

    assert Mine.caching is None


OLD = {
    "facets": Facet.LABELS,
    "facets_unless_signed": Facet(0),
    "follows_amounts": True,
    "signs_shape": True,
    "prepares_alike": True,
    "row_kinds": ("v1 Service",),
}
NEW = Caching(
    facets=Facet.LABELS,
    facets_if_unconcerned=Facet(0),
    amounts_only=True,
    signs_template=True,
    pre_state_per_template=True,
    kinds_in_facets=("v1 Service",),
)


@pytest.mark.parametrize("name", OLD)
def test_each_old_attribute_is_read_with_a_warning_that_names_the_new_one(name: str) -> None:
    # Newer promises have no old attribute.
    field = dict(zip(OLD, NEW.__slots__, strict=False))[name]
    with pytest.warns(DeprecationWarning, match=rf"write caching = Caching\({field}=") as caught:
        mine = type("Mine", (_Base, _Signs), {name: OLD[name]})
    assert getattr(mine.caching, field) == getattr(NEW, field)
    assert mine.caching != Caching()
    assert len(caught) == 1


def test_the_warning_points_to_the_class() -> None:
    with pytest.warns(DeprecationWarning, match="Mine: facets will not be read") as caught:

        class Mine(_Base, _Signs):
            facets = Facet.LABELS

    assert caught[0].filename == __file__
    assert Mine.caching == Caching(facets=Facet.LABELS)


def test_old_attributes_add_to_what_the_base_class_promises() -> None:
    class Parent(_Base, _Signs):
        caching = Caching(facets=Facet.LABELS)

    with pytest.warns(DeprecationWarning, match="signs_template=True"):

        class Mine(Parent):
            signs_shape = True

    assert Mine.caching == Caching(facets=Facet.LABELS, signs_template=True)


def test_an_old_attribute_that_setup_assigns_is_read() -> None:
    class Mine(_Base, _Signs):
        def setup(self) -> None:
            self.follows_amounts = True

    with pytest.warns(DeprecationWarning, match="amounts_only=True"):
        mine = plugin(Mine)
    assert mine.promises.amounts_only


class MineArgs(PluginArgs):
    limit: int = 3


def test_the_type_of_the_arguments_stands_in_brackets_behind_the_base_class() -> None:
    class Mine(PreFilterPlugin[MineArgs], ScalarScorePlugin):
        name = "Mine"

        def pre_filter(self, state: Any, pod: PodInfo, nodes: Any) -> None:
            return None

        def score_node(self, state: Any, pod: PodInfo, node: NodeInfo) -> int:
            return self.args.limit

    assert Mine.args_type is MineArgs
    assert plugin(Mine, {"limit": 5}).args.limit == 5


# ---- Rejection.rows -------------------------------------------------------------------------


def test_rows_of_a_rejection_are_accepted_with_a_warning() -> None:
    positions: Any = [1, 2]
    with pytest.warns(DeprecationWarning, match=r"write Rejection\(positions=…\)") as caught:
        rejection = Rejection(rows=positions, code=Code.PENDING, reasons=("r",))
    assert caught[0].filename == __file__
    assert rejection.positions == [1, 2]
    with pytest.warns(DeprecationWarning, match=r"write Rejection\.positions"):
        assert rejection.rows == [1, 2]


def test_a_rejection_needs_positions() -> None:
    with pytest.raises(TypeError, match="misses its positions"):
        Rejection(code=Code.PENDING)
