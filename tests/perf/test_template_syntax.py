"""Templates are read to their end, and what is not known is refused by its name and line."""

import pytest

from bayplan.perf.template_syntax import Call, Literal, Put, Reference, TemplateError, Text, parse


def test_text_and_values_alternate() -> None:
    assert parse("a {{ .Index }} b") == (
        Text("a "),
        Put(Reference("", ("Index",)), 1),
        Text(" b"),
    )


def test_a_pipe_hands_on_the_last_argument() -> None:
    (put,) = parse("{{ (or .n 1) | AddInt 2 }}")
    assert isinstance(put, Put)
    either = Call("or", (Reference("", ("n",)), Literal(1)))
    assert put.value == Call("AddInt", (Literal(2), either))


def test_comments_leave_nothing_and_dashes_trim() -> None:
    assert parse("a{{/* nothing */}}  {{- /* trimmed */ -}} \n b") == (Text("a"), Text("b"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{{ with .x }}", 'line 1: found "with", wanted a value or "else", "end", "if" or "range"'),
        ("\n{{ printf .x }}", 'line 2: no function "printf"; known are AddFloat, AddInt, '),
        ("{{ AddInts 1 }}", 'line 1: no function "AddInts"; did you mean "AddInt"?'),
        ("{{ Mod 1 }}", "line 1: Mod was given 1 values, which it does not take"),
        ("{{ if .x }}\nno end", "line 2: found the end of the file, wanted {{end}}"),
        ("{{ end }}", "line 1: found end, nothing is open here"),
        ("a\n{{ .x ", "line 2: found {{, wanted }} after it"),
        ("{{ }}", "line 1: found {{}}, wanted something in it"),
        ("{{ .x ? }}", 'line 1: cannot read "?"'),
        ("{{ (.x }}", 'line 1: found no ")" for a "("'),
        ("{{ .x .y }}", 'line 1: found ".y", wanted }}'),
        ("{{ 1 | 2 }}", 'line 1: what follows "|" has to be a function'),
        ("{{ , }}", 'line 1: found ",", wanted a value'),
    ],
)
def test_what_is_not_known_is_refused(text: str, said: str) -> None:
    with pytest.raises(TemplateError) as refused:
        parse(text)
    assert str(refused.value).startswith(said)
