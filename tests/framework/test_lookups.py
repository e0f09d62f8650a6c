"""The kinds that a plugin looks up are read from its code before it runs."""

import gc
from typing import Any
from weakref import ref

from bayplan.framework.lookups import looked_up_kinds, undeclared_kinds
from bayplan.framework.plugin import PreEnqueuePlugin
from bayplan.plugins.registry import in_tree_plugins

QUOTA = "example.com/v1 Quota"


class Reads(PreEnqueuePlugin):
    name = "Reads"

    def pre_enqueue(self, pod: Any) -> None:
        self.handle.objects("example.com/v1 Quota").get(pod.namespace)
        self.handle.objects(QUOTA)


class Computes(PreEnqueuePlugin):
    """Looks up a kind from its args. Some of its strings are not kinds."""

    name = "Computes"

    def pre_enqueue(self, pod: Any) -> None:
        self.handle.objects(self.args.kind)
        self.args.objects("no kind")
        self.args.others("v1 Service")


def test_a_kind_in_a_literal_or_a_constant_is_reported() -> None:
    assert undeclared_kinds(Reads) == [QUOTA]


def test_a_kind_that_is_not_a_constant_is_checked_by_the_call() -> None:
    assert undeclared_kinds(Computes) == []


def test_in_tree_plugins_declare_the_kinds_that_they_look_up() -> None:
    """Their classes are not searched when a scheduler starts."""
    looked_up = {
        plugin.name: {kind for owner in plugin.__mro__ for kind in looked_up_kinds(owner)}
        for plugin in in_tree_plugins()
    }
    assert any(looked_up.values())
    assert all(looked_up[plugin.name] <= {*plugin.kinds} for plugin in in_tree_plugins())


def test_a_class_without_references_is_freed() -> None:
    def looked_up() -> ref[type[Any]]:
        class Local(Reads):
            name = "Local"

        assert undeclared_kinds(Local) == [QUOTA]
        return ref(Local)

    local = looked_up()
    gc.collect()
    assert local() is None
