"""The extenders of a configuration: what each is called, and what it is asked for.

Upstream names an extender by its URL; one with the URL of another is told apart by its place.
"""

from collections.abc import Sequence

from bayplan.config.schema import Extender
from bayplan.ports import ExtenderVerb


def named_extenders(entries: Sequence[Extender]) -> dict[str, Extender]:
    """In the order of the configuration."""
    found: dict[str, Extender] = {}
    for index, entry in enumerate(entries):
        name = entry.url_prefix
        found[f"{name} (extenders[{index}])" if name in found else name] = entry
    return found


def verb_paths(entry: Extender) -> dict[ExtenderVerb, str]:
    """What it may be asked for, and what follows its URL then."""
    paths = {
        ExtenderVerb.FILTER: entry.filter_verb,
        ExtenderVerb.PRIORITIZE: entry.prioritize_verb,
        ExtenderVerb.PREEMPT: entry.preempt_verb,
        ExtenderVerb.BIND: entry.bind_verb,
    }
    return {verb: path for verb, path in paths.items() if path}


def ignored_resources(entries: Sequence[Extender]) -> tuple[str, ...]:
    """What extenders look after, so that NodeResourcesFit need not: ignoredByScheduler."""
    managed = (resource for entry in entries for resource in entry.managed_resources)
    return tuple(resource.name for resource in managed if resource.ignored_by_scheduler)
