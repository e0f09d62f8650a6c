"""Validation of names, labels and selectors, as the API server checks them.

Upstream: apimachinery pkg/apis/meta/v1/validation and pkg/apis/core/validation.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from bayplan.api.objects import (
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelector,
    NodeSelectorTerm,
)
from bayplan.api.selectors import (
    DOES_NOT_EXIST,
    EXISTS,
    GREATER_THAN,
    IN,
    LESS_THAN,
    NODE_NAME_FIELD,
    NOT_IN,
    is_label_key,
    is_label_value,
)
from bayplan.problems import Problem, joined, wrong

LABEL_OPERATORS = (IN, NOT_IN, EXISTS, DOES_NOT_EXIST)
NODE_OPERATORS = (*LABEL_OPERATORS, GREATER_THAN, LESS_THAN)
FIELD_OPERATORS = (IN, NOT_IN)

LABEL_KEY = "a label key such as app or example.com/app"
LABEL_VALUE = "a label value: at most 63 letters, digits, '-', '_', '.', ending in none of the last"
DNS_SUBDOMAIN = "a DNS name: lower case letters, digits, '-' and '.', at most 253"
DNS_LABEL = "a DNS label: lower case letters, digits and '-', at most 63"

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_LABEL = re.compile(_LABEL)
_DNS_SUBDOMAIN = re.compile(rf"{_LABEL}(\.{_LABEL})*")


def is_dns_subdomain(name: str) -> bool:
    return len(name) <= 253 and _DNS_SUBDOMAIN.fullmatch(name) is not None


def is_dns_label(name: str) -> bool:
    return len(name) <= 63 and _DNS_LABEL.fullmatch(name) is not None


def one_of(names: Iterable[str]) -> str:
    return "one of " + ", ".join(names)


# ---- labels ---------------------------------------------------------------------------------


def labels(labels: Mapping[str, str] | None, path: str) -> Iterator[Problem]:
    """Check labels, or the labels of a plain selector."""
    for key, value in (labels or {}).items():
        if not is_label_key(key):
            yield wrong(path, key, LABEL_KEY)
        if not is_label_value(value):
            yield wrong(joined(path, key), value, LABEL_VALUE)


def label_key(key: str | None, path: str) -> Iterator[Problem]:
    if not key or not is_label_key(key):
        yield wrong(path, key, LABEL_KEY)


# ---- selectors ------------------------------------------------------------------------------


def label_selector(selector: LabelSelector | None, path: str) -> Iterator[Problem]:
    if selector is None:
        return
    yield from labels(selector.match_labels, joined(path, "matchLabels"))
    for index, one in enumerate(selector.match_expressions or ()):
        where = f"{path}.matchExpressions[{index}]"
        yield from _requirement(one, LABEL_OPERATORS, where)
        yield from _label_values(one, where)


def node_selector(selector: NodeSelector | None, path: str) -> Iterator[Problem]:
    """Check the terms of a node selector; there must be at least one."""
    if selector is None:
        return
    where = joined(path, "nodeSelectorTerms")
    if not selector.node_selector_terms:
        yield wrong(where, None, "at least one term")
    for index, term in enumerate(selector.node_selector_terms or ()):
        yield from node_term(term, f"{where}[{index}]", checks_values=True)


def node_term(term: NodeSelectorTerm, path: str, *, checks_values: bool) -> Iterator[Problem]:
    """``checks_values``: whether values must be valid labels. Upstream does not check preferred
    terms."""
    for index, one in enumerate(term.match_expressions or ()):
        where = f"{path}.matchExpressions[{index}]"
        yield from _requirement(one, NODE_OPERATORS, where)
        if checks_values:
            yield from _label_values(one, where)
    for index, one in enumerate(term.match_fields or ()):
        yield from _field_requirement(one, f"{path}.matchFields[{index}]")


def _requirement(
    one: LabelSelectorRequirement, operators: tuple[str, ...], path: str
) -> Iterator[Problem]:
    yield from label_key(one.key, joined(path, "key"))
    count = len(one.values or ())
    if one.operator not in operators:
        yield wrong(joined(path, "operator"), one.operator, one_of(operators), operators)
    elif one.operator in (IN, NOT_IN) and not count:
        yield wrong(joined(path, "values"), None, f"at least one value for {one.operator}")
    elif one.operator in (EXISTS, DOES_NOT_EXIST) and count:
        yield wrong(joined(path, "values"), one.values, f"no values for {one.operator}")
    elif one.operator in (GREATER_THAN, LESS_THAN) and count != 1:
        expected = f"exactly one value for {one.operator}"
        yield wrong(joined(path, "values"), one.values or None, expected)


def _label_values(one: LabelSelectorRequirement, path: str) -> Iterator[Problem]:
    for index, value in enumerate(one.values or ()):
        if not is_label_value(value):
            yield wrong(f"{path}.values[{index}]", value, LABEL_VALUE)


def _field_requirement(one: LabelSelectorRequirement, path: str) -> Iterator[Problem]:
    if one.key != NODE_NAME_FIELD:
        yield wrong(joined(path, "key"), one.key, NODE_NAME_FIELD, (NODE_NAME_FIELD,))
    if one.operator not in FIELD_OPERATORS:
        expected = one_of(FIELD_OPERATORS)
        yield wrong(joined(path, "operator"), one.operator, expected, FIELD_OPERATORS)
    elif len(one.values or ()) != 1:
        expected = f"exactly one value for {one.operator}"
        yield wrong(joined(path, "values"), one.values or None, expected)
    elif not is_dns_subdomain((one.values or ("",))[0]):
        yield wrong(f"{path}.values[0]", (one.values or ("",))[0], "a node's name")
