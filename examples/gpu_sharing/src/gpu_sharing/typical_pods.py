"""The pods a cluster is typically asked to run: what fragmentation is measured against.

They are given to the scheduler as a ConfigMap, so that it can be read, kept and changed like any
other object:

    data: {pods: '[{"cpuMilli": 12000, "gpus": 1, "gpuMilli": 460, "share": 0.12}, …]'}

`with_typical_pods` makes it from the pods of an experiment: the most frequent shapes (CPU, GPUs,
thousandths, models) that together are 95 % of them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from bayplan import Handle, PodInfo
from gpu_sharing.asks import ask_of_placed

CONFIG_MAP = "v1 ConfigMap"
NAMESPACE, NAME, KEY = "default", "typical-pods", "pods"
#: So much of all pods the typical ones make up.
COVERED = 0.95


class TypicalPodsError(LookupError):
    """The ConfigMap is missing or says nothing that can be understood."""


class TypicalPod(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    cpu_milli: int
    gpus: int
    gpu_milli: int
    share: float
    models: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class TypicalPods:
    """As arrays: one value per typical pod."""

    cpu_milli: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    milli: npt.NDArray[np.int16]
    #: The different ones of these, and which of them each pod asks for.
    amounts: npt.NDArray[np.int16]
    which: npt.NDArray[np.intp]
    #: Add up to 1.
    shares: npt.NDArray[np.float64]
    #: What each may run on; empty: any model.
    models: tuple[tuple[str, ...], ...]


def typical_pods(handle: Handle) -> TypicalPods:
    """Those of the cluster. Raises TypicalPodsError."""
    found = handle.objects(CONFIG_MAP).get(NAME, NAMESPACE)
    data: Any = None if found is None else found.content.get("data")
    text = data.get(KEY) if isinstance(data, dict) else None
    if not isinstance(text, str):
        raise TypicalPodsError(
            f"wanted a ConfigMap {NAMESPACE}/{NAME} with the key {KEY!r}, found none; "
            "an experiment makes it with prepare: [typicalPods]"
        )
    return _parsed(text)


@lru_cache(maxsize=8)
def _parsed(text: str) -> TypicalPods:
    try:
        pods = msgspec.json.decode(text, type=list[TypicalPod])
    except msgspec.MsgspecError as problem:
        raise TypicalPodsError(f"ConfigMap {NAMESPACE}/{NAME}, {KEY}: {problem}") from None
    shares = np.array([pod.share for pod in pods], np.float64)
    milli = np.array([pod.gpu_milli for pod in pods], np.int16)
    amounts, which = np.unique(milli, return_inverse=True)
    return TypicalPods(
        cpu_milli=np.array([pod.cpu_milli for pod in pods], np.int64),
        counts=np.array([pod.gpus for pod in pods], np.int64),
        milli=milli,
        amounts=amounts,
        which=which,
        shares=shares / shares.sum() if shares.sum() else shares,
        models=tuple(pod.models for pod in pods),
    )


# ---- making them ----------------------------------------------------------------------------


def with_typical_pods(pods: Sequence[PodInfo]) -> Iterable[dict[str, Any]]:
    """A preparation of experiments: the ConfigMap for the pods that are to be placed."""
    text = msgspec.json.encode(list(most_frequent(pods))).decode()
    metadata = {"name": NAME, "namespace": NAMESPACE}
    return [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {KEY: text}}]


def most_frequent(pods: Iterable[PodInfo]) -> Iterator[TypicalPod]:
    """The most frequent shapes, until enough of all pods are covered."""
    counts = Counter((pod.requests.get("cpu", 0), ask_of_placed(pod)) for pod in pods)
    total, covered = counts.total(), 0
    for (cpu_milli, ask), count in counts.most_common():
        if covered >= COVERED * total:
            return
        covered += count
        yield TypicalPod(cpu_milli, ask.count, ask.milli, count / total, ask.models)
