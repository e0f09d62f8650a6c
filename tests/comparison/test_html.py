"""The report as one page."""

from html.parser import HTMLParser

from msgspec import structs

from bayplan.comparison.html import page
from bayplan.comparison.table import SPEED, About, ComparedConfiguration, Comparison
from bayplan.sim.output.result import FailureResult
from tests.comparison.kit import run

COMPARISON = Comparison(
    [
        run(name, seed, placed=seed + more, left=1.0)
        for name, more in (("a", 1.5), ("b", 2.5))
        for seed in (0, 2)
    ],
    "a",
)


class Cells(HTMLParser):
    """The rows of cells of all tables, and the open tags."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in ("meta", "img"):
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        inside = [tag for tag in self.open if tag in ("td", "th", "small")]
        # A metric's meaning is in a `small` element below its name.
        if inside and (inside[-1] != "small" or len(self.rows[-1]) > 1):
            self.rows[-1][-1] += data


def test_the_tables_have_means_differences_and_runs() -> None:
    rows = Cells(page(COMPARISON, "Study", {})).rows
    assert ["placed", "2.50 ± 1.41", "3.50 ± 1.41", "+1 [+1, +1] better"] in rows
    assert ["left", "1 ± 0"] in rows
    assert ["a", "2", "3.50", "1"] in rows
    assert any(row[0] == SPEED for row in rows)


def test_the_conclusion_comes_first_and_metrics_name_their_better_direction() -> None:
    text = page(COMPARISON, "Study", {})
    conclusion = "b against a: better in placed (+1). 1 metric is the same."
    assert 0 < text.index(conclusion) < text.index("What differs") < text.index("What was compared")
    meaning = "pods that the run bound and that are on nodes at the end"
    assert f"{meaning}; in pods; higher is better ↑" in text


def test_inputs_configurations_plugins_and_versions_are_listed() -> None:
    about = About(
        inputs={"": ("cluster.yaml",)},
        configurations=(
            ComparedConfiguration("a", "a.yaml", "weight: 1\n"),
            ComparedConfiguration("b", "b.yaml", "weight: <2>\n"),
        ),
        plugin_files=("mine.py",),
    )
    text = page(Comparison(COMPARISON.runs, "a", about), "Study", {})
    for words in (
        "cluster.yaml",
        "b.yaml",
        "mine.py",
        about.versions,
        "-weight: 1\n+weight: &lt;2",
    ):
        assert words in text


def test_a_failure_comes_first() -> None:
    failure = FailureResult(plugin="Mine", count=2, example="d/p", message="broke")
    runs = [
        structs.replace(one, result=structs.replace(one.result, failures=(failure,)))
        for one in COMPARISON.runs[:1]
    ]
    text = page(Comparison(runs, "a"), "Study", {})
    assert "a: 2 failures of plugin Mine in 1 run, first with seed 0 at d/p: broke" in text


def test_every_tag_is_closed() -> None:
    result = Cells(page(COMPARISON, "Study & more", {"p": "<svg/>"}))
    assert result.open == []
