"""Making one plugin for a test: args checked as in a configuration, over a sample cluster."""

from typing import Any, TypeVar, cast

from bayplan.framework.handle import Handle
from bayplan.framework.plugin import Plugin
from bayplan.problems import ConfigError
from bayplan.profile.resolved_config import checked_args
from bayplan.testing.clusters import SampleCluster, handle_for

P = TypeVar("P", bound=Plugin)


def plugin(
    plugin_class: type[P],
    args: Any = None,
    *,
    cluster: SampleCluster | None = None,
    handle: Handle | None = None,
    instance_name: str | None = None,
) -> P:
    """An instance: ``plugin(LabelScore, {"label": "price"}, cluster=cluster(nodes=5))``.

    ``args``: plain values as in pluginConfig, or the plugin's own struct. Raises ConfigError with
    all their errors. Without ``handle``, the plugin gets a handle over ``cluster``, or over an
    empty cluster.
    """
    checked, problems = checked_args(plugin_class, {} if args is None else args)
    if problems:
        raise ConfigError(problems, plugin_class.name)
    name = instance_name or plugin_class.name
    if handle is None:
        handle = cast(Handle, handle_for(cluster or SampleCluster(), plugin_class, name))
    return plugin_class(checked, handle, name)
