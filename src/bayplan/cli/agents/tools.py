"""The tools: for each, what an agent may say, and the command line that it becomes.

A tool is a question of the command line. Its arguments are checked against its schema, and become
options in the form `--name=value`; names come after `--`. So no text of an agent, and no name from
a cluster that an agent repeats, is read as another option. Manifests are texts, not paths: a tool
reads no file that the process was not started with.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias, final

import msgspec

from bayplan.problems import shown

Schema: TypeAlias = Mapping[str, Any]
Arguments: TypeAlias = Mapping[str, Any]

#: The longest manifest, and the longest name, in characters.
MANIFEST_LENGTH_MAX: Final = 2**20
_NAME_LENGTH_MAX: Final = 512
_CONFIGURATIONS_MAX: Final = 8


class ToolError(Exception):
    """Arguments that a tool does not take; the message says what was found and what is wanted."""


@final
@dataclass(frozen=True, kw_only=True)
class Workplace:
    """The cluster that the process was started with, and a folder for manifests."""

    #: Files of the cluster; (): the live cluster.
    paths: tuple[str, ...]
    #: --kubeconfig, --context and --at.
    cluster_flags: tuple[str, ...]
    #: --config, --plugin, --feature-gates.
    policy_flags: tuple[str, ...]
    #: --seed.
    seed_flags: tuple[str, ...] = ()
    #: The folder of a run whose decisions are explained; "": there is none.
    run: str = ""
    folder: Path = field(default_factory=Path)

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags of a question about the cluster."""
        return (*self.cluster_flags, *self.policy_flags, *self.seed_flags, "-o", "json")

    def written(self, name: str, text: str) -> str:
        """Write a manifest; returns its path."""
        path = self.folder / name
        path.write_text(text, encoding="utf-8", errors="surrogatepass")
        return str(path)

    def files(self) -> tuple[str, ...]:
        """The files of the cluster. Raises ToolError for a live cluster."""
        if not self.paths:
            raise ToolError(
                "this question needs the cluster as files: write them with `bayplan capture -o "
                "cluster.yaml`, and start `bayplan mcp cluster.yaml`"
            )
        return self.paths


@final
@dataclass(frozen=True, kw_only=True)
class Tool:
    """One tool."""

    name: str
    description: str
    properties: Mapping[str, Schema]
    required: tuple[str, ...] = ()
    #: Makes the command line. Raises ToolError.
    line: Callable[[Workplace, Arguments], list[str]]

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of the arguments."""
        return {
            "type": "object",
            "properties": dict(self.properties),
            "required": list(self.required),
            "additionalProperties": False,
        }

    def command_line(self, workplace: Workplace, arguments: Arguments) -> list[str]:
        """Raises ToolError."""
        self._check(arguments)
        return self.line(workplace, arguments)

    def _check(self, arguments: Arguments) -> None:
        for name in arguments:
            if name not in self.properties:
                raise ToolError(f"found {shown(name)}, wanted one of {', '.join(self.properties)}")
        for name in self.required:
            if name not in arguments:
                raise ToolError(f"{name}: is missing")
        for name, value in arguments.items():
            _check_value(name, self.properties[name], value)


_TYPES: Mapping[str, type] = {"string": str, "integer": int, "boolean": bool}


def _check_value(name: str, schema: Schema, value: Any) -> None:
    """Raises ToolError."""
    kind: str = schema["type"]
    if kind == "array":
        if not isinstance(value, list):
            raise _refusal(name, value, "a list")
        for each in msgspec.convert(value, list[Any]):
            _check_value(name, schema["items"], each)
    elif kind == "object":
        count_max: int = schema["maxProperties"]
        members = msgspec.convert(value, dict[str, Any]) if isinstance(value, dict) else None
        if members is None or len(members) > count_max:
            raise _refusal(name, value, f"an object with {count_max} texts at most")
        for each in members.values():
            _check_value(name, schema["additionalProperties"], each)
    elif not isinstance(value, _TYPES[kind]) or (kind == "integer" and isinstance(value, bool)):
        raise _refusal(name, value, f"{'an' if kind == 'integer' else 'a'} {kind}")
    elif isinstance(value, str) and len(value) > schema["maxLength"]:
        raise _refusal(name, value, f"{schema['maxLength']:,} characters at most")
    elif isinstance(value, int) and not isinstance(value, bool) and value < schema["minimum"]:
        raise _refusal(name, value, f"at least {schema['minimum']}")


def _refusal(name: str, value: Any, want: str) -> ToolError:
    return ToolError(f"{name}: found {shown(value)}, wanted {want}")


# ---- schemas ------------------------------------------------------------------------------------


def _name(description: str) -> Schema:
    return {"type": "string", "maxLength": _NAME_LENGTH_MAX, "description": description}


def _names(description: str) -> Schema:
    items = {"type": "string", "maxLength": _NAME_LENGTH_MAX}
    return {"type": "array", "items": items, "description": description}


def _text(description: str) -> Schema:
    return {"type": "string", "maxLength": MANIFEST_LENGTH_MAX, "description": description}


def _count(description: str, minimum: int = 1) -> Schema:
    return {"type": "integer", "minimum": minimum, "description": description}


def _flag(description: str) -> Schema:
    return {"type": "boolean", "description": description}


_NAMESPACE = _name("The namespace of names without one. Default: default, or that of the context")
_MANIFEST = _text("Kubernetes manifests as YAML or JSON text, as for `kubectl apply -f`")
_LIMIT = _count("Count no further. Default: 10000")
_IGNORE_PENDING = _flag("Leave out the pods of the cluster that wait")
_REQUESTS: Mapping[str, Schema] = {
    "cpu": _name("In place of a manifest: what a pod requests, as 500m"),
    "memory": _name("In place of a manifest: what a pod requests, as 16Gi"),
    "gpu": _count("In place of a manifest: GPUs of a pod, of the kind that nodes offer"),
    "resource": _names("In place of a manifest: any resource, as nvidia.com/mig-1g.5gb=1"),
    "namespace": _NAMESPACE,
}
_TOPOLOGY_KEY = _name("Domains of this label of nodes, such as topology.kubernetes.io/zone")


# ---- command lines ------------------------------------------------------------------------------


def _options(arguments: Arguments, *names: str) -> Iterator[str]:
    """`--name=value` for the arguments that are there; `--name` for a flag that is set."""
    for name in names:
        value = arguments.get(name)
        option = f"--{name.replace('_', '-')}"
        if isinstance(value, list):
            yield from (f"{option}={each}" for each in msgspec.convert(value, list[str]))
        elif value is True:
            yield option
        elif value is not None and value is not False:
            yield f"{option}={value}"


def _why(workplace: Workplace, arguments: Arguments) -> list[str]:
    words = [*([arguments["kind"]] if "kind" in arguments else []), arguments["name"]]
    options = [*_options(arguments, "namespace")]
    if arguments.get("fixes") is False:
        options.append("--no-fixes")
    return ["why", *options, *workplace.flags, "--", *words, *workplace.paths]


def _why_all_pending(workplace: Workplace, arguments: Arguments) -> list[str]:
    options = _options(arguments, "namespace", "selector")
    return ["why", "--all-pending", *options, *workplace.flags, "--", *workplace.paths]


def _explain_decision(workplace: Workplace, arguments: Arguments) -> list[str]:
    if not workplace.run:
        raise ToolError("there is no run: start `bayplan mcp --run DIR`")
    options = _options(arguments, "namespace", "node", "attempt")
    return ["why", f"--run={workplace.run}", *options, "-o", "json", "--", arguments["name"]]


def _fit(workplace: Workplace, arguments: Arguments) -> list[str]:
    options = [*_requests(workplace, arguments), *_options(arguments, "max", "limit", "replicas")]
    options += _options(arguments, "ignore_pending")
    return ["fit", *options, *workplace.flags, "--", *workplace.paths]


def _headroom(workplace: Workplace, arguments: Arguments) -> list[str]:
    options = [*_requests(workplace, arguments), *_options(arguments, "limit", "ignore_pending")]
    return ["headroom", *options, *workplace.flags, "--", *workplace.paths]


def _requests(workplace: Workplace, arguments: Arguments) -> Iterator[str]:
    """The workload: its manifest, or what its pods request."""
    if "manifest" in arguments:
        yield f"--filename={workplace.written('workload.yaml', arguments['manifest'])}"
    yield from _options(arguments, "cpu", "memory", "gpu", "resource", "namespace")


def _whatif(workplace: Workplace, arguments: Arguments) -> list[str]:
    names = ("drain", "remove", "cordon", "uncordon", "add", "like", "scale", "namespace")
    options = list(_options(arguments, *names, "until", "force"))
    if "apply" in arguments:
        options.append(f"--apply={workplace.written('change.yaml', arguments['apply'])}")
    return ["whatif", *options, *workplace.flags, "--", *workplace.paths]


def _drain_each(workplace: Workplace, arguments: Arguments) -> list[str]:
    options = _options(arguments, "topology_key", "force")
    return ["whatif", "--drain-each", *options, *workplace.flags, "--", *workplace.paths]


def _simulate(workplace: Workplace, arguments: Arguments) -> list[str]:
    paths = [*workplace.files()]
    if "manifest" in arguments:
        paths.append(workplace.written("scenario.yaml", arguments["manifest"]))
    options = _options(arguments, "until")
    flags = (*workplace.policy_flags, *workplace.seed_flags, "-o", "json")
    return ["simulate", *options, *flags, "--", *paths]


def _compare(workplace: Workplace, arguments: Arguments) -> list[str]:
    paths = [*workplace.files()]
    if "manifest" in arguments:
        paths.append(workplace.written("scenario.yaml", arguments["manifest"]))
    configs: list[str] = []
    for name, text in arguments["configurations"].items():
        if not name.replace("-", "").isalnum() or not name.isascii():
            raise ToolError(f"configurations: found {name!r}, wanted letters, digits and hyphens")
        configs.append(f"--config={workplace.written(f'{name}.yaml', text)}")
    options = _options(arguments, "seeds")
    plugins = [flag for flag in workplace.policy_flags if flag.startswith("--plugin=")]
    return ["compare", *configs, *options, *plugins, "-o", "json", "--", *paths]


_TOOLS: tuple[Tool, ...] = (
    Tool(
        name="why",
        description="Why a pod, or the pods of a workload, have a node or none, with causes by "
        "node count, the nearest node, and tried fixes with their commands.",
        properties={
            "name": _name("NAME or NAMESPACE/NAME of a pod or workload; or deployment/NAME"),
            "kind": _name("The kind of a workload, such as deployment, job or podgroup"),
            "fixes": _flag("false: the causes alone, which is faster in a large cluster"),
            "namespace": _NAMESPACE,
        },
        required=("name",),
        line=_why,
    ),
    Tool(
        name="why_all_pending",
        description="All pods that wait, grouped by workload and by the decisive cause, with the "
        "best fix of each group.",
        properties={
            "namespace": _name("The namespace of the pods. Default: all namespaces"),
            "selector": _name("Labels of the pods, such as app=web,tier!=db"),
        },
        line=_why_all_pending,
    ),
    Tool(
        name="fit",
        description="Does a workload fit into the cluster as it is now, and with max: how many "
        "more of it do? Nothing is created.",
        properties={
            "manifest": _MANIFEST,
            **_REQUESTS,
            "replicas": _count("With requests: how many pods. Default: 1"),
            "max": _flag("Count how many fit, whatever the replicas are"),
            "limit": _LIMIT,
            "ignore_pending": _IGNORE_PENDING,
        },
        line=_fit,
    ),
    Tool(
        name="headroom",
        description="How many more pods of each shape fit, each shape alone.",
        properties={
            "manifest": _text("The shapes: pods or controllers as YAML or JSON text"),
            **_REQUESTS,
            "limit": _LIMIT,
            "ignore_pending": _IGNORE_PENDING,
        },
        line=_headroom,
    ),
    Tool(
        name="whatif",
        description="What would happen if nodes were drained, removed, cordoned or added, a "
        "workload scaled, or objects applied: which pods move, which are left over and why.",
        properties={
            "drain": _names("Nodes to drain, as disruption budgets allow"),
            "remove": _names("Nodes that are gone, with their pods"),
            "cordon": _names("Nodes on which no pod is placed any more"),
            "uncordon": _names("Nodes on which pods are placed again"),
            "add": _count("How many nodes to add; needs like"),
            "like": _name("The node that new nodes are copies of"),
            "scale": _names("KIND/NAME=REPLICAS, such as deploy/web=20"),
            "apply": _text("Objects to apply, as YAML or JSON text"),
            "namespace": _NAMESPACE,
            "until": _name("Simulate the changes up to this time, such as 10m"),
            "force": _flag("Drain nodes that have pods without a controller, too"),
        },
        line=_whatif,
    ),
    Tool(
        name="drain_each",
        description="For each node, or each domain of a label: can it be drained as it is, and "
        "what keeps it?",
        properties={
            "topology_key": _TOPOLOGY_KEY,
            "force": _flag("Drain nodes that have pods without a controller, too"),
        },
        line=_drain_each,
    ),
    Tool(
        name="simulate",
        description="Place the pods of the cluster's files, and of a workload or scenario, under "
        "virtual time: a result for each pod.",
        properties={
            "manifest": _text("A workload or a scenario as YAML or JSON text"),
            "until": _name("End the run at this virtual time, such as 1h"),
        },
        line=_simulate,
    ),
    Tool(
        name="compare",
        description="Run several scheduler configurations over the same pods and seeds, and "
        "report what differs.",
        properties={
            "configurations": {
                "type": "object",
                "maxProperties": _CONFIGURATIONS_MAX,
                "additionalProperties": {"type": "string", "maxLength": MANIFEST_LENGTH_MAX},
                "description": "Name of a configuration → KubeSchedulerConfiguration as YAML text",
            },
            "manifest": _text("A workload or a scenario as YAML or JSON text"),
            "seeds": _name("Seeds, such as 0..9. Default: 0"),
        },
        required=("configurations",),
        line=_compare,
    ),
    Tool(
        name="explain_decision",
        description="The recorded decisions about a pod in the run that the server was started "
        "with: each attempt, the rejections and the scores of the best nodes; with node: why not "
        "this node.",
        properties={
            "name": _name("NAME or NAMESPACE/NAME of a pod; or deployment/NAME"),
            "namespace": _NAMESPACE,
            "node": _name("Explain this node for the pod"),
            "attempt": _count("The attempt to explain. Default: the last"),
        },
        required=("name",),
        line=_explain_decision,
    ),
)


def tools(*, has_run: bool) -> Sequence[Tool]:
    """The tools of a server. ``has_run``: whether there is a run whose decisions are explained."""
    return [tool for tool in _TOOLS if has_run or tool.name != "explain_decision"]
