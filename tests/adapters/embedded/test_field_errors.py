"""Texts of kube-apiserver for wrong names."""

import pytest

from bayplan.adapters.embedded.field_errors import (
    dns_label,
    dns_subdomain,
    forbidden,
    key_path,
    not_supported,
    qualified_name_faults,
)

ENDS = "and must start and end with an alphanumeric character"


@pytest.mark.parametrize(
    ("name", "faults"),
    [
        ("example.com/gpu", []),
        ("a/b/c", ["a valid label key must consist of"]),
        ("/gpu", ["prefix part must be non-empty"]),
        ("A_/gpu", ["prefix part a lowercase RFC 1123 subdomain must consist of"]),
        ("example.com/", ["name part must be non-empty", "name part must consist of"]),
        ("a" * 64, ["name part must be no more than 63 bytes"]),
        ("a b", ["name part must consist of"]),
    ],
)
def test_a_key_has_the_faults_that_the_server_finds(name: str, faults: list[str]) -> None:
    found = list(qualified_name_faults(name))
    assert len(found) == len(faults)
    assert all(one.startswith(start) for one, start in zip(found, faults, strict=True))


def test_a_wrong_name_has_the_text_of_the_server() -> None:
    [problem] = dns_label("A_", "spec.name")
    assert str(problem) == (
        'spec.name: Invalid value: "A_": a lowercase RFC 1123 label must consist of lower case '
        f"alphanumeric characters or '-', {ENDS} (e.g. 'my-name',  or '123-abc', regex used for "
        "validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
    )
    [problem] = dns_label("a.b", "p")
    assert str(problem) == 'p: Invalid value: "a.b": must not contain dots'
    [problem] = dns_subdomain("a" * 254, "p")
    assert str(problem).endswith(": must be no more than 253 characters")
    [problem] = dns_subdomain("a..b", "p")
    assert "(e.g. 'example.com', regex used for validation is" in str(problem)


def test_a_suggestion_follows_the_text_of_the_server() -> None:
    problem = not_supported("p", "Exist", ("Equal", "Exists"))
    text = 'Unsupported value: "Exist": supported values: "Equal", "Exists"'
    assert problem.actual == text
    assert str(problem) == f'p: {text}; did you mean "Exists"?'
    assert str(forbidden(key_path("p", "cpu"), "no")) == "p[cpu]: Forbidden: no"
