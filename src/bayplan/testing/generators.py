"""Generators of clusters and pods. Few distinct values, so that drawn objects match and conflict.

All draws come from one generator, so a seed determines everything. `Vocabulary` holds the names;
`Vocabulary.with_keys` adds the keys that a plugin reads, so that labels of its own are drawn, too.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from bayplan.api.objects import HOSTNAME_LABEL, ZONE_LABEL
from bayplan.api.selectors import DOES_NOT_EXIST, EXISTS, GREATER_THAN, IN, LESS_THAN, NOT_IN
from bayplan.rng import Stream

T = TypeVar("T")

NAMESPACES = ("default", "other")

#: Values of keys that a plugin reads: numbers within and beyond the range of scores, words, "".
READ_KEY_VALUES = ("0", "7", "40", "100", "2.5", "-3", "high", "")


def _node_labels() -> Mapping[str, Sequence[str]]:
    return {
        ZONE_LABEL: ("za", "zb", "zc"),
        "disktype": ("ssd", "hdd"),
        "rack": ("r1", "r2", "r3"),
        "cores": ("4", "16"),
    }


def _pod_labels() -> Mapping[str, Sequence[str]]:
    return {"app": ("web", "db", "cache"), "tier": ("front", "back")}


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The values to draw from: keys with their values, and names."""

    node_labels: Mapping[str, Sequence[str]] = field(default_factory=_node_labels)
    node_annotations: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    pod_labels: Mapping[str, Sequence[str]] = field(default_factory=_pod_labels)
    pod_annotations: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    #: Paths of fields that a plugin declares, as in `Plugin.fields`, within a node.
    node_fields: Sequence[str] = ()
    #: Beside cpu, memory and pods.
    resources: Sequence[str] = ("nvidia.com/gpu", "ephemeral-storage", "hugepages-2Mi")
    images: Sequence[str] = ("registry.test/web:1", "registry.test/db", "registry.test/tool:2")

    def with_keys(self, **keys_by_field: frozenset[str]) -> "Vocabulary":
        """``with_keys(node_labels={"price"})``: new keys get `READ_KEY_VALUES`.

        A node's hostname is always its name.
        """
        more: dict[str, Any] = {}
        for name, keys in keys_by_field.items():
            values: Mapping[str, Sequence[str]] = getattr(self, name)
            more[name] = {
                **dict.fromkeys(sorted(keys - {HOSTNAME_LABEL}), READ_KEY_VALUES),
                **values,
            }
        return replace(self, **more)


@dataclass(frozen=True, slots=True)
class Draws:
    """One generator with its vocabulary."""

    chance: Stream
    vocabulary: Vocabulary = Vocabulary()

    def one(self, choices: Sequence[T]) -> T:
        return self.chance.choice(choices)

    def happens(self, probability: float) -> bool:
        return self.chance.random() < probability

    def some(self, choices: Sequence[T], count_max: int) -> list[T]:
        """Up to ``count_max`` different ones."""
        return self.chance.sample(choices, self.chance.randint(0, min(count_max, len(choices))))

    def several(self, draw: Callable[[], T], count_max: int) -> list[T]:
        """A list of 1 to ``count_max`` drawn values."""
        return [draw() for _ in range(self.chance.randint(1, count_max))]

    def pairs(self, keys: Mapping[str, Sequence[str]], probability: float = 0.6) -> dict[str, str]:
        """Each key with a chance of its own, with one of its values."""
        return {key: self.one(values) for key, values in keys.items() if self.happens(probability)}

    # ---- selectors ------------------------------------------------------------------------

    def node_term(self) -> dict[str, Any]:
        """A node selector term over the nodes' labels."""
        labels = self.vocabulary.node_labels
        draw = self.several(lambda: self._expression(labels, (GREATER_THAN, LESS_THAN)), 2)
        return {"matchExpressions": draw}

    def label_selector(self) -> dict[str, Any]:
        """A selector of pods."""
        labels = self.vocabulary.pod_labels
        if self.happens(0.6):
            key = self.one(sorted(labels))
            return {"matchLabels": {key: self.one(labels[key])}}
        return {"matchExpressions": [self._expression(labels, ())]}

    def _expression(
        self, labels: Mapping[str, Sequence[str]], comparisons: Sequence[str]
    ) -> dict[str, Any]:
        key = self.one(sorted(labels))
        operator = self.one((IN, IN, NOT_IN, EXISTS, DOES_NOT_EXIST, *comparisons))
        if operator in (EXISTS, DOES_NOT_EXIST):
            return {"key": key, "operator": operator}
        if operator in comparisons:
            return {"key": key, "operator": operator, "values": [str(self.chance.randint(0, 20))]}
        count = self.chance.randint(1, min(2, len(labels[key])))
        values = self.chance.sample(list(labels[key]), count)
        return {"key": key, "operator": operator, "values": values}
