"""Problems in the words of kube-apiserver, and its rules for names and labels.

A problem has kube-apiserver's text letter for letter. A suggestion of ours may follow where a file
is read; a refusal of the server does not have it. Upstream: apimachinery,
pkg/util/validation/field/errors.go, pkg/util/validation, pkg/api/validate/content.
"""

import json
import re
from collections.abc import Collection, Iterator
from typing import Any

from bayplan.adapters.embedded.field_validation import LABEL
from bayplan.api.selectors import is_label_key
from bayplan.problems import Problem, nearest

# ---- texts ----------------------------------------------------------------------------------


def invalid(path: str, value: Any, detail: str, names: Collection[str] = ()) -> Problem:
    """``names``: names that the value may be a misspelling of."""
    return Problem(path, f"Invalid value: {_shown(value)}: {detail}", _hint(value, names))


def duplicate(path: str, value: Any) -> Problem:
    return Problem(path, f"Duplicate value: {_shown(value)}")


def not_found(path: str, value: Any, detail: str = "") -> Problem:
    return Problem(path, _with(f"Not found: {_shown(value)}", detail))


def required(path: str, detail: str = "") -> Problem:
    return Problem(path, _with("Required value", detail))


def forbidden(path: str, detail: str) -> Problem:
    return Problem(path, f"Forbidden: {detail}")


def not_supported(path: str, value: Any, supported: Collection[str]) -> Problem:
    listed = ", ".join(_shown(each) for each in supported)
    text = f"Unsupported value: {_shown(value)}: supported values: {listed}"
    return Problem(path, text, _hint(value, supported) if isinstance(value, str) else "")


def key_path(path: str, key: str) -> str:
    """The path of a member of a map: "spec.overhead[cpu]"."""
    return f"{path}[{key}]"


def _hint(value: str, names: Collection[str]) -> str:
    meant = nearest(value, names) if names else None
    return "" if meant is None else f'did you mean "{meant}"?'


def _with(text: str, detail: str) -> str:
    return f"{text}: {detail}" if detail else text


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# ---- names and labels -----------------------------------------------------------------------


_SUBDOMAIN = rf"{LABEL}(\.{LABEL})*"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_QUALIFIED})?"
_IS_LABEL, _IS_SUBDOMAIN = re.compile(LABEL), re.compile(_SUBDOMAIN)
_IS_QUALIFIED, _IS_LABEL_VALUE = re.compile(_QUALIFIED), re.compile(_LABEL_VALUE)
_ENDS = "and must start and end with an alphanumeric character"

NOT_A_LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    f"{_ENDS} (e.g. 'my-name',  or '123-abc', regex used for validation is '{LABEL}')"
)
NOT_A_SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    f"'.', {_ENDS} (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_NOT_QUALIFIED = (
    f"must consist of alphanumeric characters, '-', '_' or '.', {_ENDS} (e.g. 'MyName',  or "
    f"'my.name',  or '123-abc', regex used for validation is '{_QUALIFIED}')"
)
_NOT_A_LABEL_VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    f"'.', {_ENDS} (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    f"'{_LABEL_VALUE}')"
)


def dns_label(name: str, path: str) -> Iterator[Problem]:
    detail = "must not contain dots" if _IS_SUBDOMAIN.fullmatch(name) else NOT_A_LABEL
    for fault in _faults(name, 63, _IS_LABEL, detail, unit="characters"):
        yield invalid(path, name, fault)


def dns_subdomain(name: str, path: str) -> Iterator[Problem]:
    for fault in _faults(name, 253, _IS_SUBDOMAIN, NOT_A_SUBDOMAIN, unit="characters"):
        yield invalid(path, name, fault)


def label_value_faults(value: str) -> Iterator[str]:
    return _faults(value, 63, _IS_LABEL_VALUE, _NOT_A_LABEL_VALUE)


def qualified_name(name: str, path: str) -> Iterator[Problem]:
    """Check a key of a label, a resource or a gate."""
    if not is_label_key(name):
        for detail in qualified_name_faults(name):
            yield invalid(path, name, detail)


def qualified_name_faults(name: str) -> Iterator[str]:
    parts = name.split("/")
    if len(parts) > 2:
        example = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        yield f"a valid label key {_NOT_QUALIFIED} {example}"
        return
    if len(parts) == 2:
        if not parts[0]:
            yield "prefix part must be non-empty"
        else:
            for fault in _faults(parts[0], 253, _IS_SUBDOMAIN, NOT_A_SUBDOMAIN):
                yield f"prefix part {fault}"
    short = parts[-1]
    if not short:
        yield "name part must be non-empty"
    elif len(short) > 63:
        yield "name part must be no more than 63 bytes"
    if _IS_QUALIFIED.fullmatch(short) is None:
        yield f"name part {_NOT_QUALIFIED}"


def _faults(
    name: str, length_max: int, form: re.Pattern[str], detail: str, *, unit: str = "bytes"
) -> Iterator[str]:
    if len(name) > length_max:
        yield f"must be no more than {length_max} {unit}"
    if form.fullmatch(name) is None:
        yield detail
