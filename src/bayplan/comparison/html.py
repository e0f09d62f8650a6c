"""The report as one HTML page that needs nothing else: no scripts, nothing fetched."""

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape

from bayplan.comparison.figures import difference, figure, spread
from bayplan.comparison.statistics import CONFIDENCE, has_intervals
from bayplan.comparison.table import SPEED, Comparison

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem;
       padding: 0 1rem; color: #1a1a1a; background: #fff; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .9rem .3rem 0; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; white-space: normal; }
thead th { border-bottom: 1px solid #888; } tbody tr:hover { background: #f3f3f3; }
figure { display: inline-block; margin: .5rem 1rem .5rem 0; } img { max-width: 34rem; width: 100%; }
p { max-width: 48rem; } .faint { color: #666; }
"""


def page(comparison: Comparison, title: str, svgs: Mapping[str, str]) -> str:
    """``svgs``: pictures by name; none where nothing draws them."""
    body = "\n".join(_body(comparison, title, svgs))
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style>'
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>\n{body}\n</body></html>\n'


def _body(comparison: Comparison, title: str, svgs: Mapping[str, str]) -> Iterator[str]:
    yield f"<h1>{escape(title)}</h1>"
    yield f"<p>{escape(_counted(comparison))}</p>"
    for input_name in comparison.inputs:
        if input_name and len(comparison.inputs) > 1:
            yield f"<h2>Input {escape(input_name)}</h2>"
        yield "<h2>Mean ± deviation over seeds</h2>"
        yield _summaries(comparison, input_name)
        if len(comparison.configurations) > 1:
            yield f"<h2>Difference from {escape(comparison.baseline)}</h2>"
            yield f"<p>{escape(_what_pairs_are())}</p>"
            yield _differences(comparison, input_name)
    if svgs:
        yield "<h2>Plots</h2>"
        yield from (_picture(name, svg) for name, svg in svgs.items())
    yield "<h2>Runs</h2>"
    yield _runs(comparison)


def _counted(comparison: Comparison) -> str:
    runs, names = len(comparison), comparison.configurations
    seeds = len({run.seed for run in comparison.runs})
    return (
        f"{runs} run{'s' * (runs != 1)}: {len(names)} configuration{'s' * (len(names) != 1)}, "
        f"{seeds} seed{'s' * (seeds != 1)}."
    )


def _what_pairs_are() -> str:
    text = "Runs of one seed had the same pods in the same order: they are compared pair by pair."
    if has_intervals():
        text += f" In brackets: the {CONFIDENCE:.0%} confidence interval of the mean difference."
    return text


def _summaries(comparison: Comparison, input_name: str) -> str:
    names = comparison.configurations
    rows = [
        [metric, *(spread(comparison.summary(input_name, name, metric)) for name in names)]
        for metric in (*comparison.metrics, SPEED)
    ]
    return _table(["", *names], rows)


def _differences(comparison: Comparison, input_name: str) -> str:
    names = [name for name in comparison.configurations if name != comparison.baseline]
    rows = [
        [metric, *(difference(comparison.paired(input_name, name, metric)) for name in names)]
        for metric in comparison.metrics
    ]
    return _table(["", *names], rows)


def _runs(comparison: Comparison) -> str:
    several = len(comparison.inputs) > 1
    metrics = comparison.metrics
    rows = [
        [
            run.configuration,
            *([run.input] if several else []),
            str(run.seed),
            *(figure(run.result.metrics.get(metric)) for metric in metrics),
        ]
        for run in comparison.runs
    ]
    header = ["configuration", *(["input"] if several else []), "seed", *metrics]
    return _table(header, rows)


def _picture(name: str, svg: str) -> str:
    # As an image, not in line: names inside one drawing are not those inside another.
    encoded = base64.b64encode(svg.encode()).decode()
    source = f"data:image/svg+xml;base64,{encoded}"
    return f'<figure><img alt="{escape(name)}" src="{source}"></figure>'


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    lines = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
    body = "\n".join(f"<tr>{line}</tr>" for line in lines)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>"
    return f'<div class="scroll">{table}</div>'
