"""`bayplan schema`: JSON schemas of documents and answers, for editors and programs."""

import json

import click

from bayplan.cli.epilogs import examples
from bayplan.cli.streams import put
from bayplan.lazy_loader import load

#: Name on the command line → "module:class" of an answer.
ANSWERS = {
    "comparison": "bayplan.comparison.report:ComparisonAnswer",
    "decisions": "bayplan.sim.decisions:Decisions",
    "departure-report": "bayplan.whatif.drain_each:DepartureReport",
    "explanation": "bayplan.explain.explanation:Explanation",
    "fit": "bayplan.whatif.fit:Fit",
    "headroom": "bayplan.whatif.headroom:Headroom",
    "pending-pods": "bayplan.whatif.all_pending:PendingPods",
    "plugin-checks": "bayplan.cli.check_plugins:PluginChecks",
    "plugin-list": "bayplan.cli.plugins:PluginList",
    "run-differences": "bayplan.comparison.report:RunDifferences",
    "shadow-report": "bayplan.shadow.report:ShadowReport",
    "simulation": "bayplan.sim.output.result:SimulationResult",
    "upgrade": "bayplan.whatif.upgrade.answer:Upgrade",
    "what-if-answer": "bayplan.whatif.comparison:WhatIfAnswer",
}
#: The document that `bayplan whatif -f` reads.
_WHAT_IF = "what-if"
NAMES = sorted((*ANSWERS, _WHAT_IF))


@click.command("schema", epilog=examples("bayplan schema explanation > explanation.schema.json"))
@click.argument("name", type=click.Choice(NAMES), metavar="NAME")
def schema_command(name: str) -> None:
    """Print the JSON schema of an answer or a document.

    An answer is what `-o json` prints.

    \b
    explanation       why
    pending-pods      why --all-pending
    decisions         why --run, why --address
    fit               fit
    headroom          headroom
    what-if-answer    whatif
    departure-report  whatif --drain-each, whatif --remove-each
    simulation        simulate
    shadow-report     shadow
    comparison        compare
    run-differences   compare, of two runs
    upgrade           upgrade
    plugin-list       plugins
    plugin-checks     plugins test
    what-if           the document that whatif -f reads

    The schema of the configuration is `bayplan config schema`.
    """
    if name == _WHAT_IF:
        schema = load("bayplan.sim.input.what_if:what_if_schema")()
    else:
        schema = load("bayplan.answers.document:schema_of")(load(ANSWERS[name]))
    put(json.dumps(schema, indent=2).encode() + b"\n")
