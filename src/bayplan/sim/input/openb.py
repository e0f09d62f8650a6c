"""The openb trace (alibaba/clusterdata, cluster-trace-gpu-v2023): its CSVs as nodes and pods.

A node row becomes a Node with cpu, memory, GPUs and 110 allocatable pods. A pod row becomes a Pod
in namespace default that requests whole GPUs. Further columns become annotations:
``bayplan.dev/gpu-milli`` is the share of a GPU that the pod uses, and ``bayplan.dev/gpu-spec`` the
GPU models on which it may run. The outcome in the real cluster (pod_phase) is not read.

The pods of a trace arrive in one of two ways:

arrivals   all at 0 s, in the order of the file, never removed: how much fits.
trace      each at its creation_time, counted from the earliest of all pods. Once bound a pod
           runs for deletion_time - scheduled_time, or for deletion_time - creation_time where it
           was never scheduled in the trace, and is then gone; without a deletion_time it stays.
"""

import csv
import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from bayplan.adapters.embedded.field_validation import DNS_SUBDOMAIN, is_dns_subdomain
from bayplan.api.objects import HOSTNAME_LABEL
from bayplan.durations import DURATION_ANNOTATION
from bayplan.objects.keys import DEFAULT_NAMESPACE
from bayplan.problems import Problem, wrong
from bayplan.sim.input.workload import WHEN_DONE_ANNOTATION, Content

GPU = "nvidia.com/gpu"
GPU_MODEL_LABEL = "bayplan.dev/gpu-model"
GPU_MILLI_ANNOTATION = "bayplan.dev/gpu-milli"
GPU_SPEC_ANNOTATION = "bayplan.dev/gpu-spec"
PODS_PER_NODE = 110

NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
TIME_COLUMNS = ("creation_time", "deletion_time")

#: The key under which the CSV reader stores the surplus fields of a row.
_SURPLUS = ""

Row = Mapping[str, str]


class TracePod(NamedTuple):
    """A pod and its creation time, in the seconds of the trace; 0 if times are not read."""

    content: Content
    at_seconds: float


class CsvTable(NamedTuple):
    """One CSV: nodes or pods."""

    nodes: tuple[Content, ...]
    pods: tuple[TracePod, ...]
    problems: tuple[Problem, ...]


def read_table(text: str, *, with_times: bool) -> CsvTable:
    """A list of nodes or a list of pods; the header decides."""
    try:
        rows = csv.DictReader(text.splitlines(), restkey=_SURPLUS, strict=True)
        header = tuple(rows.fieldnames or ())
        if _has(header, NODE_COLUMNS):
            return _nodes(rows)
        if _has(header, POD_COLUMNS):
            return _pods(rows, header, with_times=with_times)
    except csv.Error as problem:
        return CsvTable((), (), (Problem("", f"cannot be read as CSV: {problem}"),))
    expected = f"openb's nodes ({','.join(NODE_COLUMNS)}) or pods ({','.join(POD_COLUMNS)}…)"
    return CsvTable((), (), (wrong("line 1", ",".join(map(str, header)), expected),))


def is_table(text: str) -> bool:
    """Whether the header is that of a trace's nodes or pods."""
    header = tuple(next(iter(text.splitlines()), "").split(","))
    return _has(header, NODE_COLUMNS) or _has(header, POD_COLUMNS)


def _has(header: tuple[str, ...], columns: tuple[str, ...]) -> bool:
    return set(columns) <= set(header)


def _nodes(rows: "csv.DictReader[str]") -> CsvTable:
    nodes: list[Content] = []
    problems: list[Problem] = []
    for row in rows:
        row_problems = list(
            _wrong_fields(row, rows.line_num, "sn", ("cpu_milli", "memory_mib", "gpu"))
        )
        problems += row_problems
        if not row_problems:
            nodes.append(_node(row))
    return CsvTable(tuple(nodes), (), tuple(problems))


def _pods(rows: "csv.DictReader[str]", header: tuple[str, ...], *, with_times: bool) -> CsvTable:
    if with_times and not _has(header, TIME_COLUMNS):
        reason = "has no creation_time and deletion_time: it cannot be replayed with its times"
        return CsvTable((), (), (Problem("line 1", reason),))
    numbers = ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
    pods: list[TracePod] = []
    problems: list[Problem] = []
    for row in rows:
        row_problems = list(_wrong_fields(row, rows.line_num, "name", numbers))
        if with_times:
            row_problems += _wrong_times(row, rows.line_num)
        problems += row_problems
        if not row_problems:
            pods.append(_timed_pod(row) if with_times else TracePod(_pod(row), 0.0))
    return CsvTable((), tuple(pods), tuple(problems))


# ---- rows -----------------------------------------------------------------------------------


def _wrong_fields(
    row: Row, line: int, name_column: str, numbers: tuple[str, ...]
) -> Iterator[Problem]:
    name = row[name_column]
    if not name or not is_dns_subdomain(name):
        yield wrong(f"line {line}, {name_column}", name, DNS_SUBDOMAIN)
    for column in numbers:
        number = _number(row.get(column))
        if number is None or not number.is_integer():
            yield wrong(f"line {line}, {column}", row.get(column), "a whole number from 0 up")
    if row.get(_SURPLUS):
        yield Problem(f"line {line}", "has more fields than the header")


def _wrong_times(row: Row, line: int) -> Iterator[Problem]:
    for column in (*TIME_COLUMNS, "scheduled_time"):
        value = row.get(column)
        if _number(value) is None and (value or column == "creation_time"):
            yield wrong(f"line {line}, {column}", value, "a time in seconds")


def _number(text: Any) -> float | None:
    """A finite number that is not negative; None for other text."""
    try:
        number = float(text)
    except (TypeError, ValueError):
        return None
    return number if 0 <= number < math.inf else None


def _plain(text: str) -> str:
    """A number as a quantity is written: 8, not 8.0."""
    number = float(text)
    return str(int(number)) if number.is_integer() else str(number)


def _node(row: Row) -> Content:
    has = {"cpu": f"{_plain(row['cpu_milli'])}m", "memory": f"{_plain(row['memory_mib'])}Mi"}
    has |= {GPU: _plain(row["gpu"]), "pods": str(PODS_PER_NODE)}
    labels = {HOSTNAME_LABEL: row["sn"]}
    if row["model"]:
        labels[GPU_MODEL_LABEL] = row["model"]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": row["sn"], "labels": labels},
        "status": {"capacity": has, "allocatable": has},
    }


def _pod(row: Row, **annotations: str) -> Content:
    asks = {"cpu": f"{_plain(row['cpu_milli'])}m", "memory": f"{_plain(row['memory_mib'])}Mi"}
    resources: Content = {"requests": asks}
    if float(row["num_gpu"]):
        gpus = {GPU: _plain(row["num_gpu"])}
        resources = {"requests": {**asks, **gpus}, "limits": gpus}
    own_annotations = {GPU_MILLI_ANNOTATION: _plain(row["gpu_milli"])}
    if row.get("gpu_spec"):
        own_annotations[GPU_SPEC_ANNOTATION] = row["gpu_spec"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": row["name"],
            "namespace": DEFAULT_NAMESPACE,
            "annotations": {**own_annotations, **annotations},
        },
        "spec": {"containers": [{"name": "main", "image": "openb", "resources": resources}]},
    }


def _timed_pod(row: Row) -> TracePod:
    created = float(row["creation_time"])
    deleted = _number(row.get("deletion_time"))
    began = _number(row.get("scheduled_time"))
    if deleted is None:
        return TracePod(_pod(row), created)
    seconds = max(deleted - (created if began is None else began), 0.0)
    ends = {DURATION_ANNOTATION: f"{_plain(str(seconds))}s", WHEN_DONE_ANNOTATION: "delete"}
    return TracePod(_pod(row, **ends), created)
