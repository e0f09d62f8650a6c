"""Templates: syntax, upstream's functions, and output compared with Go's text/template."""

from typing import Any

import pytest

from bayplan.perf import gotemplate

# ---- template syntax ------------------------------------------------------------------------


def test_text_and_values_alternate() -> None:
    assert gotemplate.parse("a {{ .Index }} b") == (
        gotemplate.Text("a "),
        gotemplate.Put(gotemplate.Reference("", ("Index",)), 1),
        gotemplate.Text(" b"),
    )


def test_a_pipe_passes_its_value_as_the_last_argument() -> None:
    (put,) = gotemplate.parse("{{ (or .n 1) | AddInt 2 }}")
    assert isinstance(put, gotemplate.Put)
    either = gotemplate.Call("or", (gotemplate.Reference("", ("n",)), gotemplate.Literal(1)))
    assert put.value == gotemplate.Call("AddInt", (gotemplate.Literal(2), either))


def test_comments_are_dropped_and_dashes_trim() -> None:
    assert gotemplate.parse("a{{/* nothing */}}  {{- /* trimmed */ -}} \n b") == (
        gotemplate.Text("a"),
        gotemplate.Text("b"),
    )


@pytest.mark.parametrize(
    ("text", "message"),
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
def test_unknown_syntax_is_refused(text: str, message: str) -> None:
    with pytest.raises(gotemplate.TemplateError) as refused:
        gotemplate.parse(text)
    assert str(refused.value).startswith(message)


# ---- template functions ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments", "result"),
    [
        ("AddInt", (1, 2.9, "3"), 6),
        ("AddFloat", (0.5, 1), 1.5),
        ("SubtractInt", (2, 5), -3),
        ("SubtractFloat", (2, 0.5), 1.5),
        ("MultiplyInt", (2, 3, 4), 24),
        ("MultiplyFloat", (2, 0.25), 0.5),
        ("DivideInt", (30000, 7), 4285),
        ("DivideInt", (-7, 2), -3),
        ("DivideFloat", (1, 4), 0.25),
        ("Mod", (14, 12), 2),
        ("Mod", (-7, 3), -1),
        ("Int", (7.9,), 7),
        ("Int", ("12",), 12),
        ("JSON", ([1.0, "a<b", None],), '[1,"a<b",null]'),
        ("JSON", ({"b": 1.5, "a": True},), '{"a":true,"b":1.5}'),
        ("or", (None, 0, 5), 5),
        ("or", (None, 0), 0),
        ("and", (1, 0, 5), 0),
        ("and", (1, 2), 2),
        ("not", ("",), True),
        ("eq", ("a", "b", "a"), True),
        ("ne", ("a", "a"), False),
        ("lt", (1, 2.0), True),
        ("le", (2, 2), True),
        ("gt", ("b", "a"), True),
        ("ge", (1, 2), False),
    ],
)
def test_functions_return_the_values_of_upstreams_functions(
    name: str, arguments: Any, result: Any
) -> None:
    results = gotemplate.FUNCTIONS[name](*arguments)
    assert (results, type(results)) == (result, type(result))


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("AddInt", (None,), "found nothing, wanted a number"),
        ("AddInt", ("x",), 'found "x", wanted a number'),
        ("Int", ("1.5",), 'found "1.5", wanted a whole number'),
        ("DivideInt", (1, 0), "division by zero"),
        ("Mod", (1, 0.5), "division by zero"),
        ("lt", (True, 1), "found true, wanted a number"),
    ],
)
def test_invalid_arguments_are_refused(name: str, arguments: Any, message: str) -> None:
    with pytest.raises(gotemplate.FunctionError, match=message):
        gotemplate.FUNCTIONS[name](*arguments)


# ---- templating -----------------------------------------------------------------------------


VALUES: dict[str, Any] = {"Index": 7, "Count": 9, "n": 3.0, "big": 1000000.0, "s": "x", "no": None}


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a-{{.Index}}", "a-7"),
        ("{{.n}} {{.big}} {{AddFloat .n 0.5}} {{MultiplyFloat 0.00001 1}}", "3 1e+06 3.5 1e-05"),
        ("{{if .no}}a{{else if .s}}b{{else}}c{{end}}", "b"),
        ("{{if eq .s `x`}}single{{end}}", "single"),
        ("{{if not true}}a{{end}}", ""),
        ("{{range (.n | Int)}}<{{.}}>{{end}}", "<0><1><2>"),
        ("{{range $i := 2}}{{$i}}{{$.s}}{{end}}", "0x1x"),
        ("{{range 0}}a{{else}}none{{end}}", "none"),
        ("{{$x := or .no 5}}{{$x}}{{$x = 6}}{{$x}}", "56"),
        ("{{(or .no nil) | JSON}}", "null"),
        ("{{AddInt 8000 (Mod .Index (DivideInt .Count 2))}}", "8003"),
        ('{{"a\\tb"}}{{true}}', "a\tbtrue"),
    ],
)
def test_actions_write_the_output_of_go(text: str, written: str) -> None:
    assert gotemplate.Template(text).filled(VALUES) == written


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n{{.missing}}", 'line 2: no parameter "missing"'),
        ("{{$y}}", 'line 1: no variable "$y"'),
        ("{{.s.deeper}}", 'line 1: no field "deeper" in "x"'),
        ("{{range .n}}{{end}}", "line 1: found 3.0, wanted a whole number or a list"),
        ("{{$}}", "line 1: cannot write"),
        ("{{AddInt .s 1}}", 'line 1: found "x", wanted a number'),
    ],
)
def test_a_template_that_cannot_be_executed_is_refused(text: str, message: str) -> None:
    with pytest.raises(gotemplate.TemplateError) as refused:
        gotemplate.Template(text).filled(VALUES)
    assert str(refused.value).startswith(message)


def test_a_template_without_actions_is_constant() -> None:
    assert gotemplate.Template("a {{/* b */}}").is_constant
    assert not gotemplate.Template("{{.Index}}").is_constant
