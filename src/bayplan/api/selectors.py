"""Label selectors, node selector terms, taints and tolerations: pure, hashable predicates.

A compiled `Selector` is a value: equal selectors are equal objects to a dictionary, so that
matches can be computed once per (label set, selector). Upstream: apimachinery labels.Selector,
component-helpers nodeaffinity, api/core/v1 Toleration.ToleratesTaint.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import final

from msgspec import Struct

from bayplan.api.objects import (
    NO_EXECUTE,
    NO_SCHEDULE,
    LabelSelector,
    LabelSelectorRequirement,
    Node,
    NodeSelectorTerm,
    PodSpec,
    PreferredSchedulingTerm,
    Taint,
    Toleration,
)

IN = "In"
NOT_IN = "NotIn"
EXISTS = "Exists"
DOES_NOT_EXIST = "DoesNotExist"
GREATER_THAN = "Gt"
LESS_THAN = "Lt"
#: The operators that compare numbers; for tolerations behind the gate
#: TaintTolerationComparisonOperators.
COMPARISONS = frozenset((GREATER_THAN, LESS_THAN))
_DECIMAL = re.compile(r"0|-?[1-9][0-9]*")
#: The most characters of a number of 64 bits.
_INT64_DIGITS = 20

_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_LABEL_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_DNS_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_INT64 = re.compile(r"[+-]?0*([0-9]{1,19})")
_VALUE_LENGTH_MAX = 63
_PREFIX_LENGTH_MAX = 253
_KEY_LENGTH_MAX = _PREFIX_LENGTH_MAX + 1 + _VALUE_LENGTH_MAX
#: Keys of which it is remembered whether they are keys: the objects of a cluster have few, each
#: many times.
_KEYS_MAX = 10_000


class SelectorError(ValueError):
    """A selector that does not parse; the message says which part."""


def parse_int64(text: str) -> int | None:
    """Go's ``strconv.ParseInt(text, 10, 64)``, None where that fails."""
    match = _INT64.fullmatch(text)
    if match is None:
        return None
    # Without leading zeros: Python refuses to read thousands of digits.
    number = int(match[1]) if text[0] != "-" else -int(match[1])
    return number if -(2**63) <= number < 2**63 else None


class Requirement(Struct, frozen=True):
    """One condition on one label."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        return self.matches_value(labels.get(self.key))

    def matches_value(self, value: str | None) -> bool:
        """Whether the condition holds for a label's value; None where the label is absent."""
        operator = self.operator
        if operator == IN:
            return value is not None and value in self.values
        if operator == NOT_IN:
            return value is None or value not in self.values
        if operator == EXISTS:
            return value is not None
        if operator == DOES_NOT_EXIST:
            return value is None
        return value is not None and self._compares(value)

    def _compares(self, value: str) -> bool:
        number, bound = parse_int64(value), parse_int64(self.values[0])
        if number is None or bound is None:
            return False
        return number > bound if self.operator == GREATER_THAN else number < bound


class Selector(Struct, frozen=True):
    """All requirements must hold; ``nothing`` matches no labels at all."""

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False

    def matches(self, labels: Mapping[str, str]) -> bool:
        if self.nothing:
            return False
        return all(requirement.matches(labels) for requirement in self.requirements)

    @property
    def is_everything(self) -> bool:
        return not self.nothing and not self.requirements

    def equality(self) -> tuple[str, str] | None:
        """A (key, value) that every match must carry, for an index; None if there is none."""
        for requirement in self.requirements:
            if requirement.operator == IN and len(requirement.values) == 1:
                return requirement.key, requirement.values[0]
        return None


EVERYTHING = Selector()
NOTHING = Selector(nothing=True)


def label_selector(selector: LabelSelector | None) -> Selector:
    """A null selector matches nothing, an empty one everything.

    Raises SelectorError as metav1.LabelSelectorAsSelector fails.
    """
    if selector is None:
        return NOTHING
    requirements = [
        _checked(Requirement(key, IN, (value,)))
        for key, value in (selector.match_labels or {}).items()
    ]
    for expression in selector.match_expressions or ():
        if expression.operator not in (IN, NOT_IN, EXISTS, DOES_NOT_EXIST):
            raise SelectorError(f'"{expression.operator}" is not a valid label selector operator')
        requirements.append(_checked(_requirement(expression)))
    return Selector(_ordered(requirements))


#: A term of `kubectl -l`: !key, key, key=value, key!=value, key in (a,b), key notin (a).
_TERM = re.compile(
    r"\s*(?:!\s*(?P<absent>[^\s=!,()]+)|(?P<key>[^\s=!,()]+)"
    r"(?:\s*(?P<sign>==?|!=)\s*(?P<value>[^\s=!,()]*)|\s+(?P<set>in|notin)\s*\((?P<values>[^()]*)\))?)"
    r"\s*(?:,|$)"
)


def selector_of_text(text: str) -> Selector:
    """The selector that a user writes for `kubectl -l`. Raises SelectorError."""
    requirements: list[Requirement] = []
    position = 0
    while position < len(text):
        term = _TERM.match(text, position)
        if term is None or term.end() == position:
            raise SelectorError(f'unable to parse "{text[position:]}"')
        requirements.append(_checked(_of_term(term)))
        position = term.end()
    return Selector(_ordered(requirements))


def _of_term(term: re.Match[str]) -> Requirement:
    if term["absent"]:
        return Requirement(term["absent"], DOES_NOT_EXIST)
    if term["sign"]:
        return Requirement(term["key"], NOT_IN if term["sign"] == "!=" else IN, (term["value"],))
    if term["set"]:
        values = tuple(sorted({value.strip() for value in term["values"].split(",")}))
        return Requirement(term["key"], IN if term["set"] == "in" else NOT_IN, values)
    return Requirement(term["key"], EXISTS)


def map_selector(labels: Mapping[str, str]) -> Selector:
    """The selector of a plain map (nodeSelector, a Service's): unchecked, as upstream's is."""
    return Selector(_ordered(Requirement(key, IN, (value,)) for key, value in labels.items()))


def with_requirements(selector: Selector, more: Iterable[Requirement]) -> Selector:
    """A selector that demands ``more`` besides."""
    if selector.nothing:
        return selector
    return Selector(_ordered((*selector.requirements, *more)))


def _ordered(requirements: Iterable[Requirement]) -> tuple[Requirement, ...]:
    return tuple(sorted(set(requirements), key=lambda r: (r.key, r.operator, r.values)))


def _requirement(expression: LabelSelectorRequirement) -> Requirement:
    values = expression.values or ()
    if expression.operator in (IN, NOT_IN):
        values = tuple(sorted(set(values)))  # a set of values; elsewhere their number counts
    return Requirement(expression.key, expression.operator, values)


def _checked(requirement: Requirement) -> Requirement:
    """Upstream's labels.NewRequirement. Raises SelectorError."""
    count = len(requirement.values)
    operator = requirement.operator
    if operator in (IN, NOT_IN) and count == 0:
        raise SelectorError(f"{requirement.key}: for operator {operator}, values are required")
    if operator in (EXISTS, DOES_NOT_EXIST) and count:
        raise SelectorError(f"{requirement.key}: for operator {operator}, values must be empty")
    if operator in (GREATER_THAN, LESS_THAN) and (
        count != 1 or parse_int64(requirement.values[0]) is None
    ):
        raise SelectorError(f"{requirement.key}: operator {operator} takes one integer")
    if not is_label_key(requirement.key):
        raise SelectorError(f"{requirement.key!r} is no label key")
    for value in requirement.values:
        if not is_label_value(value):
            raise SelectorError(f"{value!r} is no label value")
    return requirement


def is_label_value(value: str) -> bool:
    return len(value) <= _VALUE_LENGTH_MAX and _LABEL_VALUE.fullmatch(value) is not None


def is_label_key(key: str) -> bool:
    """A qualified name: [dns-subdomain/]name."""
    return len(key) <= _KEY_LENGTH_MAX and _is_label_key(key)


@lru_cache(_KEYS_MAX)
def _is_label_key(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    if slash and (len(prefix) > _PREFIX_LENGTH_MAX or not _DNS_SUBDOMAIN.fullmatch(prefix)):
        return False
    return len(name) <= _VALUE_LENGTH_MAX and _LABEL_NAME.fullmatch(name) is not None


# ---- node selectors ------------------------------------------------------------------------

_NODE_OPERATORS = frozenset((IN, NOT_IN, EXISTS, DOES_NOT_EXIST, GREATER_THAN, LESS_THAN))
NODE_NAME_FIELD = "metadata.name"


class NodeTerm(Struct, frozen=True):
    """One compiled term: label requirements and conditions on the node's name, AND-ed.

    ``error``: the term does not parse; a required one then matches nothing, silently, and a
    preferred one is an error (fact of v1.37.0).
    """

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()
    error: str | None = None

    @property
    def is_empty(self) -> bool:
        """A term without conditions matches no node."""
        return not self.labels and not self.fields and self.error is None

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        if self.error is not None or self.is_empty:
            return False
        return all(r.matches_value(name) for r in self.fields) and all(
            r.matches(labels) for r in self.labels
        )


def node_term(term: NodeSelectorTerm) -> NodeTerm:
    """Upstream: component-helpers nodeaffinity.newNodeSelectorTerm."""
    try:
        labels = tuple(_node_requirement(e) for e in term.match_expressions or ())
        fields = tuple(_field_requirement(e) for e in term.match_fields or ())
    except SelectorError as problem:
        return NodeTerm(error=str(problem))
    return NodeTerm(labels, fields)


def _node_requirement(expression: LabelSelectorRequirement) -> Requirement:
    if expression.operator not in _NODE_OPERATORS:
        raise SelectorError(f'"{expression.operator}" is not a valid node selector operator')
    return _checked(_requirement(expression))


def _field_requirement(expression: LabelSelectorRequirement) -> Requirement:
    if expression.operator not in (IN, NOT_IN):
        raise SelectorError(f'"{expression.operator}" is not a valid node field selector operator')
    if len(expression.values or ()) != 1:
        raise SelectorError(f"field {expression.key}: exactly one value is wanted")
    if expression.key == NODE_NAME_FIELD:
        return _requirement(expression)
    # A node has no other field: any other field reads as "". The result is constant, and is
    # expressed as a condition on the name that always or never holds.
    holds = (expression.values == ("",)) == (expression.operator == IN)
    return Requirement(NODE_NAME_FIELD, NOT_IN if holds else IN, ())


class PreferredTerm(Struct, frozen=True):
    weight: int
    term: NodeTerm


def preferred_terms(
    terms: Iterable[PreferredSchedulingTerm] | None,
) -> tuple[PreferredTerm, ...]:
    """Terms that are empty or weigh nothing are left out, as upstream leaves them out."""
    compiled = (PreferredTerm(t.weight, node_term(t.preference)) for t in terms or ())
    return tuple(t for t in compiled if t.weight != 0 and not t.term.is_empty)


# ---- taints --------------------------------------------------------------------------------


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether a toleration covers a taint. Upstream: core/v1/toleration.go."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    operator, value, taint_value = toleration.operator, toleration.value or "", taint.value or ""
    if operator == EXISTS:
        return True
    if operator in COMPARISONS:
        number, limit = _decimal(taint_value), _decimal(value)
        if number is None or limit is None:
            return False
        return number < limit if operator == LESS_THAN else number > limit
    return operator in (None, "", "Equal") and value == taint_value


def is_decimal(text: str) -> bool:
    """Whether kube-apiserver reads a whole number here, of any size: no sign but "-", no zero in
    front."""
    return _DECIMAL.fullmatch(text) is not None


def _decimal(text: str) -> int | None:
    """A whole number of 64 bits."""
    number = int(text) if len(text) <= _INT64_DIGITS and is_decimal(text) else None
    return number if number is not None and -(2**63) <= number < 2**63 else None


def first_untolerated(
    taints: Iterable[Taint],
    tolerations: Iterable[Toleration],
    counts: Callable[[Taint], bool],
) -> Taint | None:
    """The first taint that counts and that no toleration covers."""
    accepted = tuple(tolerations)
    for taint in taints:
        if counts(taint) and not any(tolerates(t, taint) for t in accepted):
            return taint
    return None


@final
class NodeRequirements:
    """The demands of a pod on its node, compiled: node selector, required node affinity,
    tolerations.

    Does not refuse cordoned nodes: DaemonSets use them.
    """

    def __init__(self, spec: PodSpec, tolerations: Iterable[Toleration]) -> None:
        """``tolerations``: all of the pod's. Raises SelectorError."""
        affinity = spec.affinity.node_affinity if spec.affinity is not None else None
        required = affinity.required if affinity is not None else None
        self._selector = map_selector(spec.node_selector or {})
        self._terms: list[NodeTerm] | None = None
        if required is not None:
            self._terms = [node_term(term) for term in required.node_selector_terms or ()]
        self._tolerations = tuple(tolerations)

    def admits(self, node: Node) -> bool:
        labels, name = node.metadata.labels or {}, node.metadata.name
        if not self._selector.matches(labels):
            return False
        if self._terms is not None and not any(t.matches(labels, name) for t in self._terms):
            return False
        return first_untolerated(node.spec.taints or (), self._tolerations, keeps_away) is None


def keeps_away(taint: Taint) -> bool:
    """Whether a node with the taint takes no new pod that does not tolerate it."""
    return taint.effect in (NO_SCHEDULE, NO_EXECUTE)
