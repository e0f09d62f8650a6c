"""The GPU request of a pod: number of devices, share of each, and models.

The number is a resource request (``nvidia.com/gpu``). The share of each, in thousandths, and the
accepted models are annotations, which the importer of the openb trace writes, too.
"""

from dataclasses import dataclass
from functools import lru_cache

from bayplan import PodInfo

GPU = "nvidia.com/gpu"
MODEL_LABEL = "bayplan.dev/gpu-model"
MILLI_ANNOTATION = "bayplan.dev/gpu-milli"
MODELS_ANNOTATION = "bayplan.dev/gpu-spec"
#: All of one device.
WHOLE_MILLI = 1000


class AskError(ValueError):
    """An invalid annotation; the message has its name and its value."""


@dataclass(frozen=True, slots=True)
class GpuAsk:
    """``count`` devices with ``milli`` thousandths of each, of one of ``models`` (none: any)."""

    count: int
    milli: int
    models: tuple[str, ...] = ()

    @property
    def total_milli(self) -> int:
        return self.count * self.milli

    @property
    def is_shared(self) -> bool:
        """Whether other pods may use a part of the device."""
        return 0 < self.milli < WHOLE_MILLI


NO_GPU = GpuAsk(0, 0)


def ask_of(pod: PodInfo) -> GpuAsk:
    """The request of a pod. Raises AskError."""
    count = pod.requests.get(GPU, 0)
    if not count:
        return NO_GPU
    notes = pod.annotations
    return _ask(count, notes.get(MILLI_ANNOTATION, ""), notes.get(MODELS_ANNOTATION, ""))


def ask_of_placed(pod: PodInfo) -> GpuAsk:
    """The request of a placed pod; with an invalid annotation it uses whole devices."""
    try:
        return ask_of(pod)
    except AskError:
        return GpuAsk(pod.requests[GPU], WHOLE_MILLI)


@lru_cache(maxsize=4096)
def _ask(count: int, milli_text: str, models_text: str) -> GpuAsk:
    milli = WHOLE_MILLI
    if milli_text:
        milli = int(milli_text) if milli_text.isascii() and milli_text.isdecimal() else 0
        if not 0 < milli <= WHOLE_MILLI:
            raise AskError(
                f"{MILLI_ANNOTATION}: found {milli_text!r}, wanted a whole number from 1 to 1000"
            )
    return GpuAsk(count, milli, tuple(filter(None, models_text.split("|"))))
