"""All cells of the notebooks run in order, and their stored outputs are those of today.

`python -m tests.examples.test_notebooks` writes the outputs anew.
"""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


def shown(code: str, names: dict[str, Any]) -> Any:
    """Run a cell. As in Jupyter, returns the value of the last line if that is an expression."""
    tree = ast.parse(code)
    last = tree.body[-1]
    if not isinstance(last, ast.Expr):
        exec(compile(tree, "cell", "exec"), names)
        return None
    exec(compile(ast.Module(tree.body[:-1], []), "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)


def outputs(notebook: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """The outputs of each cell with code, as a notebook stores them."""
    names: dict[str, Any] = {}
    number = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        number += 1
        value = shown("".join(cell["source"]), names)
        if value is None:
            yield []
            continue
        data = {"text/html": _lines(value._repr_html_()), "text/plain": _lines(str(value))}
        yield [
            {
                "data": data,
                "execution_count": number,
                "metadata": {},
                "output_type": "execute_result",
            }
        ]


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def steady(value: Any) -> str:
    """Without the time that a simulation took, and its speed."""
    return re.sub(r"[\d.,]+( s:| per second)", r"…\1", json.dumps(value))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_in_any_folder_and_has_its_outputs(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    notebook = json.loads(path.read_text(encoding="utf-8"))
    stored = [cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert steady(stored) == steady(list(outputs(notebook)))
    assert sum(map(bool, stored)) >= 4


def test_there_are_two_notebooks() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["capacity", "policies"]


def _write(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, (cell, made) in enumerate(zip(cells, outputs(notebook), strict=True), 1):
        cell["outputs"], cell["execution_count"] = made, number
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for notebook_path in NOTEBOOKS:
        _write(notebook_path)
