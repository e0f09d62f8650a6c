"""The report as one HTML page without scripts or external resources.

First the conclusions, then the differences, then what was compared. Metrics that are equal in all
runs, and the numbers of each run, are in folded sections.
"""

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape

from bayplan.answers.amounts import counted
from bayplan.comparison.findings import BETTER, WORSE, Finding, Findings, conclusions, findings
from bayplan.comparison.metrics.catalogue import HIGHER, metric_note
from bayplan.comparison.report import failure_lines, run_failures
from bayplan.comparison.statistics import CONFIDENCE, difference, figure, has_intervals, spread
from bayplan.comparison.table import SPEED, Comparison

_STYLE = """
:root { color-scheme: light dark; --text: #1a1a1a; --faint: #5c5c5c; --page: #fff;
        --line: #d0d0d0; --row: #f4f4f4; --better: #06603a; --worse: #a3220b; --card: #f6f7f9; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6e6e6; --faint: #a0a0a0; --page: #16181c; --line: #3a3d42; --row: #1f2227;
          --better: #5fd39b; --worse: #ff9478; --card: #1f2227; } }
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem;
       padding: 0 1rem; color: var(--text); background: var(--page); }
h1 { font-size: 1.6rem; margin-bottom: .5rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; }
.conclusion { background: var(--card); border-left: 4px solid var(--faint); padding: .6rem 1rem;
              max-width: 60rem; } .conclusion p { margin: .3rem 0; }
.failure { color: var(--worse); font-weight: 600; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem 1.2rem .35rem 0; text-align: right; vertical-align: top; }
td { white-space: nowrap; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; white-space: normal; min-width: 14rem; }
table.texts th, table.texts td { text-align: left; white-space: normal; }
thead th { border-bottom: 2px solid var(--line); } tbody tr:hover { background: var(--row); }
.better { color: var(--better); } .worse { color: var(--worse); }
small, .faint { color: var(--faint); font-weight: 400; } td small { display: block; }
figure { display: inline-block; margin: .5rem 1rem .5rem 0; }
img { max-width: 34rem; width: 100%; background: #fff; border-radius: 4px; }
summary { cursor: pointer; font-weight: 600; } details { margin: 1rem 0; }
pre { background: var(--card); padding: .8rem; overflow-x: auto; font-size: .85rem; }
p { max-width: 52rem; }
"""
_ARROWS = {HIGHER: "higher is better ↑", "lower": "lower is better ↓", "": ""}


def page(comparison: Comparison, title: str, svgs: Mapping[str, str]) -> str:
    """``svgs``: plots by name; empty without matplotlib."""
    body = "\n".join(_body(comparison, title, svgs))
    head = (
        f'<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style>"
    )
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>\n{body}\n</body></html>\n'


def _body(comparison: Comparison, title: str, svgs: Mapping[str, str]) -> Iterator[str]:
    yield f"<h1>{escape(title)}</h1>"
    yield f'<p class="faint">{escape(_counted(comparison))}</p>'
    yield from _paragraphs("failure", failure_lines(run_failures(comparison)))
    is_compared = len(comparison.configurations) > 1
    for input_name in comparison.inputs:
        if input_name and len(comparison.inputs) > 1:
            yield f"<h2>Input {escape(input_name)}</h2>"
        if is_compared:
            yield from _compared(comparison, input_name)
        else:
            yield "<h2>Mean ± deviation over seeds</h2>"
            yield _summaries(comparison, input_name, comparison.metrics)
    yield "<h2>What was compared</h2>"
    yield from _about(comparison)
    if svgs:
        yield "<h2>Plots</h2>"
        if is_compared:
            yield "<p>What is the same in every pair of runs has no plot.</p>"
        yield from (_picture(name, svg) for name, svg in svgs.items())
    yield "<h2>Runs</h2>"
    yield _folded(f"{len(comparison):,} runs with every metric", _runs(comparison))


# ---- what differs --------------------------------------------------------------------------


def _compared(comparison: Comparison, input_name: str) -> Iterator[str]:
    yield '<div class="conclusion">'
    yield from _paragraphs("", conclusions(comparison, input_name))
    yield "</div>"
    metric_findings = findings(comparison, input_name)
    if metric_findings.differing:
        yield "<h2>What differs</h2>"
        yield _differing(comparison, metric_findings, input_name)
        yield f'<p class="faint">{escape(_what_differences_are())}</p>'
    if metric_findings.same:
        table = _summaries(comparison, input_name, metric_findings.same, is_same=True)
        yield _folded(
            f"{len(metric_findings.same):,} metrics are the same in every pair of runs", table
        )
    yield _folded("How fast it was simulated", _summaries(comparison, input_name, ()))


def _what_differences_are() -> str:
    text = (
        "Each cell is mean ± deviation over seeds. Runs of one seed had the same pods in the same "
        "order, so the difference is taken pair by pair."
    )
    if has_intervals():
        text += f" In brackets stands its {CONFIDENCE:.0%} confidence interval."
    return f"{text} A question mark says that the difference may be chance."


def _differing(comparison: Comparison, metric_findings: Findings, input_name: str) -> str:
    other_names = [name for name in comparison.configurations if name != comparison.baseline]
    headings = [
        cell for name in other_names for cell in (name, f"difference from {comparison.baseline}")
    ]
    rows: list[list[str]] = []
    for metric, row in metric_findings.differing:
        cells = [escape(spread(comparison.summary(input_name, comparison.baseline, metric)))]
        for one in row:
            own = comparison.summary(input_name, one.configuration, metric)
            cells += [escape(spread(own)), _difference_cell(one)]
        rows.append([_metric_cell(metric), *cells])
    return _table(["metric", comparison.baseline, *headings], rows)


def _difference_cell(finding: Finding) -> str:
    if finding.paired is not None and finding.paired.is_nothing:
        return '<span class="faint">same</span>'
    verdict = finding.verdict if finding.is_clear and finding.verdict in (BETTER, WORSE) else ""
    text = f"{escape(difference(finding.paired))} <small>{escape(finding.text)}</small>"
    return f'<span class="{verdict}">{text}</span>' if verdict else text


def _metric_cell(metric: str) -> str:
    note = metric_note(metric)
    unit = f"in {note.unit}" if note.unit else ""
    text = "; ".join(filter(None, (note.meaning, unit, _ARROWS[note.better])))
    return f"{escape(metric)}<small>{escape(text)}</small>" if text else escape(metric)


def _summaries(
    comparison: Comparison, input_name: str, metrics: Sequence[str], *, is_same: bool = False
) -> str:
    names = [comparison.baseline] if is_same else comparison.configurations
    # Equal metrics have one column. The speed is never equal.
    shown = metrics if is_same else (*metrics, SPEED)
    rows = [
        [
            _metric_cell(metric),
            *(escape(spread(comparison.summary(input_name, name, metric))) for name in names),
        ]
        for metric in shown
    ]
    return _table(["metric", *(["every configuration"] if is_same else names)], rows)


# ---- what was compared ---------------------------------------------------------------------


def _counted(comparison: Comparison) -> str:
    configurations = counted(len(comparison.configurations), "configuration")
    seeds = counted(len({run.seed for run in comparison.runs}), "seed")
    return f"{counted(len(comparison), 'run')}: {configurations}, {seeds}."


def _about(comparison: Comparison) -> Iterator[str]:
    about = comparison.about
    seeds = ", ".join(map(str, sorted({run.seed for run in comparison.runs})))
    rows = [
        *(
            [f"input {name}" if name else "input", "\n".join(paths)]
            for name, paths in about.inputs.items()
        ),
        *([f"configuration {one.name}", one.source or "default"] for one in about.configurations),
        *([["plugins", "\n".join(about.plugin_files)]] if about.plugin_files else []),
        ["baseline", comparison.baseline],
        ["seeds", seeds],
        ["made with", about.versions],
    ]
    cells = [[escape(cell).replace("\n", "<br>") for cell in row] for row in rows]
    yield _table(["", ""], cells, "texts")
    for one in about.configurations:
        if one.name != comparison.baseline:
            lines = about.difference(comparison.baseline, one.name)
            text = escape("\n".join(lines) or "the texts are equal")
            heading = f"Configuration {one.name} against {comparison.baseline}"
            yield _folded(heading, f"<pre>{text}</pre>")


def _runs(comparison: Comparison) -> str:
    several = len(comparison.inputs) > 1
    metrics = comparison.metrics
    rows = [
        [
            escape(run.configuration),
            *([escape(run.input)] if several else []),
            str(run.seed),
            *(escape(figure(run.result.metrics.get(metric))) for metric in metrics),
        ]
        for run in comparison.runs
    ]
    header = ["configuration", *(["input"] if several else []), "seed", *metrics]
    return _table(header, rows)


# ---- parts ---------------------------------------------------------------------------------


def _paragraphs(css_class: str, texts: Iterable[str]) -> Iterator[str]:
    opening = f'<p class="{css_class}">' if css_class else "<p>"
    yield from (f"{opening}{escape(text)}</p>" for text in texts)


def _folded(heading: str, content: str) -> str:
    return f"<details><summary>{escape(heading)}</summary>{content}</details>"


def _picture(name: str, svg: str) -> str:
    # As an image, not inline: ids within one SVG may clash with those of another.
    encoded = base64.b64encode(svg.encode()).decode()
    source = f"data:image/svg+xml;base64,{encoded}"
    return f'<figure><img alt="{escape(name)}" src="{source}"></figure>'


def _table(header: Sequence[str], rows: Iterable[Sequence[str]], css_class: str = "") -> str:
    """``rows``: cells that contain HTML."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    lines = ("".join(f"<td>{cell}</td>" for cell in row) for row in rows)
    body = "\n".join(f"<tr>{line}</tr>" for line in lines)
    opening = f'<table class="{css_class}">' if css_class else "<table>"
    table = f"{opening}<thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>"
    return f'<div class="scroll">{table}</div>'
