"""Pages of long documents."""

import json

from bayplan.answers.formats import written_document
from bayplan.cli.agents.paging import pages_of


def _text(document: object) -> str:
    return written_document(document, "json").decode()


def test_each_page_is_a_document_and_the_lists_go_on() -> None:
    document = {
        "kind": "Fit",
        "pods": [{"pod": f"default/web-{n}", "node": f"n{n}"} for n in range(50)],
        "nodes": {f"n{n}": n for n in range(50)},
        "waiting": {"placed": 1},
        "notes": ["one", "two"],
    }
    pages = pages_of(_text(document), 600)
    parts = [json.loads(page) for page in pages]
    assert max(map(len, pages)) <= 600
    assert all((part["kind"], part["waiting"]) == ("Fit", {"placed": 1}) for part in parts)
    assert [pod for part in parts for pod in part["pods"]] == document["pods"]
    assert [note for part in parts for note in part["notes"]] == document["notes"]
    nodes = [item for part in parts for item in part["nodes"].items()]
    assert nodes == [(f"n{n}", n) for n in range(50)]


def test_an_entry_that_is_too_long_for_a_page_is_on_several() -> None:
    nodes = {f"n{n}": n for n in range(100)}
    changes = [{"verb": "create", "content": {"labels": {"zone": f"z{n}"}}} for n in range(100)]
    fixes = [{"node": "new-1", "steps": ["add"], "changes": changes}, {"node": "n2", "changes": []}]
    document = {
        "shapes": [{"shape": "small", "max": {"count": 7, "nodes": nodes}}],
        "explanations": [{"pod": "default/web", "fixes": fixes}],
    }
    pages = pages_of(_text(document), 1500)
    assert max(map(len, pages)) <= 1500
    assert len(pages) < 3 * len(_text(document)) / 1500
    parts = [json.loads(page) for page in pages]
    shapes = [shape for part in parts for shape in part["shapes"]]
    explanations = [one for part in parts for one in part["explanations"]]
    assert {shape["shape"] for shape in shapes} == {"small"}
    assert [n for shape in shapes for n in shape["max"].get("nodes", {}).items()] == [
        *nodes.items()
    ]
    assert {one["pod"] for one in explanations} == {"default/web"}
    parts_of_fixes = [fix for one in explanations for fix in one["fixes"]]
    assert [change for fix in parts_of_fixes for change in fix["changes"]] == changes
    assert [step for fix in parts_of_fixes for step in fix.get("steps", [])] == ["add"]


def test_a_short_text_and_a_text_without_entries_are_one_page() -> None:
    short = _text({"kind": "Fit"})
    assert pages_of(short, 600) == [short]
    assert pages_of("no document" * 100, 600) == ["no document" * 100]
    assert pages_of(_text(["x"] * 500), 600) == [_text(["x"] * 500)]
    assert len(pages_of(_text({"text": "x" * 1000}), 600)) == 1
    long_entry = {"pods": ["x" * 1000, "y"]}
    assert [json.loads(page) for page in pages_of(_text(long_entry), 600)] == [
        {"pods": ["x" * 1000]},
        {"pods": ["y"]},
    ]
