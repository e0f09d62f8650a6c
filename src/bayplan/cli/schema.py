"""`bayplan schema`: JSON schemas of documents and answers, for editors and programs."""

import json

import click

from bayplan.cli.options import examples
from bayplan.cli.streams import put
from bayplan.lazy_loader import load

#: Name on the command line → "module:function" that makes the schema.
_SCHEMAS = {
    "decisions": "bayplan.explain.decisions:decisions_schema",
    "explanation": "bayplan.explain.explanation:explanation_schema",
    "what-if": "bayplan.sim.input.what_if:what_if_schema",
}


@click.command("schema", epilog=examples("bayplan schema explanation > explanation.schema.json"))
@click.argument("name", type=click.Choice(sorted(_SCHEMAS)), metavar="|".join(sorted(_SCHEMAS)))
def schema_command(name: str) -> None:
    """Print the JSON schema of an answer or a document.

    explanation: the answer of `bayplan why -o json`. decisions: the same with --run and --address.
    what-if: the document of `bayplan whatif`.
    The schema of the configuration is `bayplan config schema`.
    """
    schema = load(_SCHEMAS[name])()
    put(json.dumps(schema, indent=2).encode() + b"\n")
