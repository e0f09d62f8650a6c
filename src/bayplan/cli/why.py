"""`bayplan why`: what became of a pod, and why."""

from pathlib import Path

import click

from bayplan.cli.console import reader
from bayplan.cli.problems import fail, refusals
from bayplan.sim.replay import node_verdict
from bayplan.sim.run_folder import RunFolder
from bayplan.sim.why import known_pods, story_of, told, told_node


@click.command("why")
@click.argument("pod", metavar="NAMESPACE/NAME")
@click.option("--run", "run_path", required=True, metavar="DIR", help="what simulate --out wrote")
@click.option("--node", metavar="NAME", help="look at one node, by replaying up to the attempt")
@click.option("--attempt", type=int, help="with --node: which attempt; the last one if left out")
def why_command(pod: str, run_path: str, node: str | None, attempt: int | None) -> None:
    """Tell a pod's story from a run's journal: each attempt, who rejected which nodes and why,
    the best nodes' scores plugin by plugin, and what broke the tie."""
    with refusals():
        folder = RunFolder(Path(run_path))
        name = pod if "/" in pod else f"default/{pod}"
        records = list(folder.journal())
        story = story_of(name, records)
        if not story:
            fail(f"{run_path}: nothing was decided about {name}; {known_pods(name, records)}")
        if node is None:
            reader().print(told(story))
            return
        reader().print(told_node(node_verdict(folder, name, node, attempt)))
