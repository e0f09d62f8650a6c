"""What comes out of a template, compared with what Go's text/template writes."""

from typing import Any

import pytest

from bayplan.perf.template_syntax import TemplateError
from bayplan.perf.templating import Template

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
def test_actions_write_what_go_writes(text: str, written: str) -> None:
    assert Template(text).filled(VALUES) == written


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\n{{.missing}}", 'line 2: no parameter "missing"'),
        ("{{$y}}", 'line 1: no variable "$y"'),
        ("{{.s.deeper}}", 'line 1: no field "deeper" in "x"'),
        ("{{range .n}}{{end}}", "line 1: found 3.0, wanted a whole number or a list"),
        ("{{$}}", "line 1: cannot write"),
        ("{{AddInt .s 1}}", 'line 1: found "x", wanted a number'),
    ],
)
def test_what_cannot_be_filled_in_is_refused(text: str, said: str) -> None:
    with pytest.raises(TemplateError) as refused:
        Template(text).filled(VALUES)
    assert str(refused.value).startswith(said)


def test_a_template_without_actions_is_constant() -> None:
    assert Template("a {{/* b */}}").is_constant
    assert not Template("{{.Index}}").is_constant
