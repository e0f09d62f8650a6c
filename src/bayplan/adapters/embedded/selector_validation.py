"""Validation of labels and selectors, in the order and the words of kube-apiserver.

Upstream: apimachinery pkg/apis/meta/v1/validation, pkg/apis/core/validation (ValidateNodeSelector).
"""

from collections.abc import Iterator, Mapping

from bayplan.adapters.embedded.field_errors import (
    dns_subdomain,
    forbidden,
    invalid,
    label_value_faults,
    qualified_name,
    required,
)
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
    is_label_value,
)
from bayplan.problems import Problem, joined

_NOT_AN_OPERATOR = "not a valid selector operator"
_OPERATORS = (IN, NOT_IN, EXISTS, DOES_NOT_EXIST, GREATER_THAN, LESS_THAN)


# ---- labels ---------------------------------------------------------------------------------


def labels(labels: Mapping[str, str] | None, path: str) -> Iterator[Problem]:
    """Check labels, or the labels of a plain selector."""
    for key, value in (labels or {}).items():
        yield from qualified_name(key, path)
        yield from label_value(value, path)


def label_value(value: str, path: str) -> Iterator[Problem]:
    if not is_label_value(value):
        for detail in label_value_faults(value):
            yield invalid(path, value, detail)


# ---- selectors ------------------------------------------------------------------------------


def label_selector(selector: LabelSelector | None, path: str) -> Iterator[Problem]:
    if selector is None:
        return
    yield from labels(selector.match_labels, joined(path, "matchLabels"))
    for index, one in enumerate(selector.match_expressions or ()):
        where = f"{path}.matchExpressions[{index}]"
        if one.operator in (GREATER_THAN, LESS_THAN):
            yield invalid(f"{where}.operator", one.operator, _NOT_AN_OPERATOR)
            yield from qualified_name(one.key, f"{where}.key")
        else:
            yield from _requirement(one, where)
        yield from _values(one, where)


def node_selector(selector: NodeSelector | None, path: str) -> Iterator[Problem]:
    """Check the terms of a node selector; there must be at least one."""
    if selector is None:
        return
    where = joined(path, "nodeSelectorTerms")
    if not selector.node_selector_terms:
        yield required(where, "must have at least one node selector term")
    for index, term in enumerate(selector.node_selector_terms or ()):
        yield from node_term(term, f"{where}[{index}]", checks_values=True)


def node_term(term: NodeSelectorTerm, path: str, *, checks_values: bool) -> Iterator[Problem]:
    """``checks_values``: whether values must be valid labels. Upstream does not check preferred
    terms."""
    for index, one in enumerate(term.match_expressions or ()):
        where = f"{path}.matchExpressions[{index}]"
        yield from _requirement(one, where)
        if checks_values:
            yield from _values(one, where)
    for index, one in enumerate(term.match_fields or ()):
        yield from _field_requirement(one, f"{path}.matchFields[{index}]")


def _requirement(one: LabelSelectorRequirement, path: str) -> Iterator[Problem]:
    count, values = len(one.values or ()), joined(path, "values")
    if one.operator in (IN, NOT_IN):
        if not count:
            yield required(values, "must be specified when `operator` is 'In' or 'NotIn'")
    elif one.operator in (EXISTS, DOES_NOT_EXIST):
        if count:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield forbidden(values, detail)
    elif one.operator in (GREATER_THAN, LESS_THAN):
        if count != 1:
            detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            yield required(values, detail)
    else:
        yield invalid(joined(path, "operator"), one.operator, _NOT_AN_OPERATOR, _OPERATORS)
    yield from qualified_name(one.key, joined(path, "key"))


def _values(one: LabelSelectorRequirement, path: str) -> Iterator[Problem]:
    for index, value in enumerate(one.values or ()):
        yield from label_value(value, f"{path}.values[{index}]")


def _field_requirement(one: LabelSelectorRequirement, path: str) -> Iterator[Problem]:
    if one.operator not in (IN, NOT_IN):
        yield invalid(joined(path, "operator"), one.operator, _NOT_AN_OPERATOR)
    elif len(one.values or ()) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield required(joined(path, "values"), detail)
    if one.key != NODE_NAME_FIELD:
        yield invalid(joined(path, "key"), one.key, "not a valid field selector key")
        return
    for index, value in enumerate(one.values or ()):
        yield from dns_subdomain(value, f"{path}.values[{index}]")
