"""The registry of plugins: name → class.

Plugins in the tree are in a table, and each is imported when its class is first needed. Installed
packages add plugins through the entry point group `bayplan.plugins`; a user's policy is a file. The
registry refuses a class that cannot serve as a plugin. Every class in it is concrete, has a name,
an extension point and methods that can be called, and is no subclass of a plugin.
"""

import importlib.util
import inspect
import sys
from collections.abc import Container, Iterable, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from traceback import extract_tb
from types import ModuleType
from typing import Any, TypeVar, cast, final

from bayplan.api.field_tables import path_fault
from bayplan.framework.in_process_extender import InProcessExtender
from bayplan.framework.plugin import Plugin, PluginArgs
from bayplan.framework.profile import EXTENSION_POINTS, extension_points_of
from bayplan.framework.validation import fault_of_methods, missing_methods
from bayplan.lazy_loader import load
from bayplan.ports import ExtenderVerb, raise_interruption
from bayplan.problems import ConfigError, Problem, listed
from bayplan.rng import stable_hash

ENTRY_POINT_GROUP = "bayplan.plugins"
#: Where the plugins of the table below come from.
IN_TREE = "in tree"
#: The package whose classes define the methods of plugins and extenders.
_CONTRACT = "bayplan.framework"
_EXAMPLE_FIELD = "Node.status.nodeInfo.osImage"

#: The plugins in the tree: name of the plugin and of its class → module in `bayplan.plugins`.
_IN_TREE = {
    "SchedulingGates": "scheduling_gates",
    "PrioritySort": "priority_sort",
    "NodeName": "node_name",
    "NodeUnschedulable": "node_unschedulable",
    "TaintToleration": "taint_toleration",
    "NodeAffinity": "node_affinity",
    "NodePorts": "node_ports",
    "DeferredPodScheduling": "deferred_pod_scheduling",
    "NodeResourcesFit": "node_resources_fit",
    "VolumeRestrictions": "volume_restrictions",
    "NodeVolumeLimits": "node_volume_limits",
    "VolumeBinding": "volume_binding",
    "VolumeZone": "volume_zone",
    "PodTopologySpread": "pod_topology_spread",
    "InterPodAffinity": "inter_pod_affinity",
    "DynamicResources": "dynamic_resources",
    "DefaultPreemption": "default_preemption",
    "NodeResourcesBalancedAllocation": "node_resources_balanced_allocation",
    "ImageLocality": "image_locality",
    "DefaultBinder": "default_binder",
    "NodeDeclaredFeatures": "node_declared_features",
    "GangScheduling": "gang_scheduling",
    "TopologyPlacementGenerator": "topology_placement_generator",
    "PodGroupPodsCount": "pod_group_pods_count",
    # From kubernetes-sigs/scheduler-plugins.
    "Coscheduling": "coscheduling",
    # Bayplan's own: for the composition of scores.
    "TopologyScorer": "topology_scorer",
    "Invert": "score_connectors",
    "Normalize": "score_connectors",
    "Scale": "score_connectors",
    "Steps": "score_connectors",
    "Combine": "score_connectors",
    "NodeNameOrder": "node_name",
}
#: The kinds that they read.
_KINDS_IN_TREE = frozenset(
    (
        "apps/v1 ReplicaSet",
        "apps/v1 StatefulSet",
        "policy/v1 PodDisruptionBudget",
        "resource.k8s.io/v1 DeviceClass",
        "resource.k8s.io/v1 DeviceTaintRule",
        "resource.k8s.io/v1 ResourceClaim",
        "resource.k8s.io/v1 ResourceSlice",
        "storage.k8s.io/v1 CSIDriver",
        "storage.k8s.io/v1 CSINode",
        "storage.k8s.io/v1 CSIStorageCapacity",
        "storage.k8s.io/v1 StorageClass",
        "storage.k8s.io/v1 VolumeAttachment",
        "v1 Namespace",
        "v1 PersistentVolume",
        "v1 PersistentVolumeClaim",
        "v1 ReplicationController",
        "v1 Service",
    )
)


def in_tree_plugins() -> tuple[type[Plugin], ...]:
    """The classes of all plugins in the tree."""
    return tuple(map(_in_tree_plugin, _IN_TREE))


def _in_tree_plugin(name: str) -> type[Plugin]:
    return load(f"bayplan.plugins.{_IN_TREE[name]}:{name}")


C = TypeVar("C")


@final
class Registry:
    """Plugin classes by name, each with the place it came from.

    ``plugins``: classes in place of the plugins in the tree.
    """

    def __init__(self, plugins: Iterable[type[Plugin]] | None = None) -> None:
        #: None: a plugin in the tree whose class is not loaded yet.
        self._plugins: dict[str, type[Plugin] | None] = {}
        self._origins: dict[str, str] = {}
        self._extenders: dict[str, type[InProcessExtender]] = {}
        if plugins is None:
            self._plugins.update(dict.fromkeys(_IN_TREE))
            self._origins.update(dict.fromkeys(_IN_TREE, IN_TREE))
        for plugin in plugins or ():
            self.add(plugin, IN_TREE)

    @property
    def names(self) -> list[str]:
        """Of all plugins, in the order they came."""
        return list(self._plugins)

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of objects that plugins read, whether a profile has them or not."""
        loaded = [plugin for plugin in self._plugins.values() if plugin is not None]
        kinds = frozenset(kind for plugin in loaded for kind in plugin.kinds)
        return kinds if len(loaded) == len(self._plugins) else kinds | _KINDS_IN_TREE

    def find(self, name: str) -> type[Plugin] | None:
        """The class of a plugin; None if there is no such plugin."""
        plugin = self._plugins.get(name)
        if plugin is None and name in self._plugins:
            plugin = self._plugins[name] = _in_tree_plugin(name)
        return plugin

    def origin(self, name: str) -> str:
        """Where a plugin came from: IN_TREE, a package's entry point, a file. Raises KeyError."""
        return self._origins[name]

    def add(self, plugin: type[Plugin], origin: str = "") -> None:
        """Add a plugin. Raises ConfigError for a class that cannot serve as a plugin."""
        fault = _fault_of(plugin)
        if fault is not None:
            raise ConfigError([Problem(plugin.__qualname__, fault)], origin)
        if plugin.name in self._plugins:
            other = self._origins[plugin.name] or "elsewhere"
            problem = f"there is a plugin {plugin.name} already ({other})"
            raise ConfigError([Problem(plugin.__qualname__, problem)], origin)
        self._plugins[plugin.name] = plugin
        self._origins[plugin.name] = origin

    @property
    def extenders(self) -> tuple[type[InProcessExtender], ...]:
        """Extenders that are Python classes, in the order of their calls."""
        return tuple(self._extenders.values())

    def add_extender(self, extender: type[InProcessExtender], origin: str = "") -> None:
        """Add an extender, which every scheduler of this registry calls. Raises ConfigError."""
        fault = _fault_of_extender(extender, self._extenders)
        if fault:
            raise ConfigError([Problem(extender.__qualname__, fault)], origin)
        self._extenders[extender.name] = extender

    def make_extenders(self) -> list[InProcessExtender]:
        """An instance of each. Raises ConfigError for one that cannot start."""
        made: list[InProcessExtender] = []
        for name, extender in self._extenders.items():
            try:
                made.append(extender())
            except BaseException as error:
                raise_interruption(error)
                text = f"extender {name} cannot start: {type(error).__name__}: {error}"
                raise ConfigError([Problem("", text)]) from error
        return made

    def load_file(self, path: str | Path) -> list[str]:
        """Add every plugin and every extender that a Python file defines; returns the plugins'
        names.

        Raises ConfigError for a file that cannot be read, fails, or defines none.
        """
        source = str(path)
        module = _run(Path(path), source)
        names: list[str] = []
        for plugin in _defined_in(module):
            self.add(plugin, source)
            names.append(plugin.name)
        extenders = _classes_in(module, InProcessExtender)
        for extender in extenders:
            self.add_extender(extender, source)
        if not names and not extenders:
            expected = "wanted a class with one of the extension points, such as ScalarScorePlugin"
            raise ConfigError([Problem("", "no plugin is defined here", expected)], source)
        return names

    def load_entry_points(self) -> list[str]:
        """Add the plugins of installed packages; returns their names. Raises ConfigError."""
        names: list[str] = []
        for point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda p: (p.name, p.value)):
            origin = f"entry point {point.name} = {point.value}"
            try:
                plugin = point.load()
            except BaseException as error:  # whatever a package does when imported
                raise_interruption(error)
                raise ConfigError([_failure(error)], origin) from error
            self.add(plugin, origin)
            names.append(plugin.name)
        return names


def default_registry(files: Iterable[str | Path] = ()) -> Registry:
    """All plugins: in the tree, installed, and those of ``files``. Raises ConfigError."""
    registry = Registry()
    registry.load_entry_points()
    for path in files:
        registry.load_file(path)
    return registry


# ---- what may be a plugin ------------------------------------------------------------------


def _fault_of(candidate: Any) -> str | None:
    """Why a class cannot serve as a plugin."""
    if not isinstance(candidate, type) or not issubclass(candidate, Plugin):
        return "not a plugin; wanted a subclass of one of the extension points"
    plugin = cast("type[Plugin]", candidate)
    missing = sorted(getattr(plugin, "__abstractmethods__", ()))
    if missing:
        return missing_methods(plugin, missing)
    name = getattr(plugin, "name", None)
    if not isinstance(name, str) or not name or "/" in name or name == "*":
        return f'name is {name!r}; wanted a string without "/", as in name = "MyPlugin"'
    for parent in plugin.__mro__[1:]:
        if _is_concrete(parent):
            return f"a subclass of the plugin {parent.__name__}; wrap it with handle.make instead"
    if not extension_points_of(plugin):
        return f"no extension point; wanted one of {', '.join(EXTENSION_POINTS)}"
    if plugin.scope not in ("row", "cluster"):
        return f"scope is {plugin.scope!r}; wanted {listed(('row', 'cluster'))}"
    args_type: Any = plugin.args_type
    if args_type is not None and not (
        isinstance(args_type, type) and issubclass(args_type, PluginArgs)
    ):
        return f"args_type is {args_type!r}; wanted a subclass of PluginArgs"
    return _fault_of_fields(plugin.fields) or fault_of_methods(plugin, _CONTRACT)


def _fault_of_extender(
    extender: type[InProcessExtender], plugin_names: Container[str]
) -> str | None:
    """Why a class cannot serve as an extender."""
    name = getattr(extender, "name", None)
    if not isinstance(name, str) or not name:
        return f'name is {name!r}; wanted a string, as in name = "MyExtender"'
    if name in plugin_names:
        return f"there is an extender {name} already"
    if not extender.verbs():
        return f"defines none of {listed(tuple(verb.value for verb in ExtenderVerb))}"
    if extender.weight <= 0:
        return f"weight is {extender.weight}; wanted 1 or more"
    return fault_of_methods(extender, _CONTRACT)


def _fault_of_fields(paths: Any) -> str | None:
    """Why `fields` cannot be read from nodes and pods."""
    if not isinstance(paths, tuple):
        return f'fields is {paths!r}; wanted a tuple, as ("{_EXAMPLE_FIELD}",)'
    for each in cast(tuple[Any, ...], paths):
        kind, _, path = str(each).partition(".")
        if kind not in ("Node", "Pod") or not path:
            return f'fields has {each!r}; wanted Node or Pod and a path, as "{_EXAMPLE_FIELD}"'
        fault = path_fault(f"v1 {kind}", path)
        if fault is not None:
            return f'fields has "{each}": {fault}'
    return None


def _is_concrete(parent: type[Any]) -> bool:
    if not issubclass(parent, Plugin) or parent is Plugin:
        return False
    return not getattr(cast("type[Plugin]", parent), "__abstractmethods__", ())


# ---- files ---------------------------------------------------------------------------------


def _run(path: Path, source: str) -> ModuleType:
    # A unique module name: two files called policy.py do not collide, and random.py does not
    # replace the library's.
    module_name = f"bayplan_plugin_{path.stem}_{stable_hash(str(path.resolve())):x}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise ConfigError([Problem("", "not a Python file", "wanted a name ending in .py")], source)
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # classes resolve their annotations there
    try:
        spec.loader.exec_module(module)
    except BaseException as error:  # whatever the file does when it is run
        del sys.modules[module_name]
        raise_interruption(error)
        raise ConfigError([_failure(error, spec.origin)], source) from error
    return module


def _classes_in(module: ModuleType, base: type[C]) -> list[type[C]]:
    """Subclasses of ``base`` that the module defines, in their order."""
    return [
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, base)
        and value.__module__ == module.__name__
    ]


def _defined_in(module: ModuleType) -> Iterator[type[Plugin]]:
    """The plugin classes that a module defines, in their order, without abstract ones with
    subclasses."""
    for plugin in _classes_in(module, Plugin):
        if not (inspect.isabstract(plugin) and plugin.__subclasses__()):
            yield plugin


def _failure(error: BaseException, file: str | None = None) -> Problem:
    """Something failed when it was imported; with the line of ``file`` that was reached."""
    if isinstance(error, SyntaxError) and error.filename == file:
        return Problem(f"line {error.lineno}", f"SyntaxError: {error.msg}")
    frames = [frame for frame in extract_tb(error.__traceback__) if frame.filename == file]
    place = f"line {frames[-1].lineno}" if frames else ""
    return Problem(place, f"{type(error).__name__}: {error}")
