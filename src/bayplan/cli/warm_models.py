"""Models that stay open between questions, for a process that answers many of them.

A command opens a model, asks one question and closes it. In a block of `lend_warm_models`,
`model_of` lends the model of an earlier question instead, if the cluster is the same and the model
is not too old: a model of files as long as the files do not change, a model of a live cluster for
some seconds. Each question is asked in a trial, which undoes what the question changes.
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple, final

from bayplan.clock import Clock
from bayplan.config import SchedulerConfig
from bayplan.model.cluster_model import ClusterModel
from bayplan.plugins.registry import Registry


class OpenedModel(NamedTuple):
    """A model with the values from which it was made."""

    model: ClusterModel
    config: SchedulerConfig
    registry: Registry


@final
class WarmModels:
    """The newest model, and what it was made of."""

    def __init__(self, clock: Clock, age_seconds_max: float) -> None:
        """``age_seconds_max``: of a model of a live cluster."""
        self._clock = clock
        self._age_seconds_max = age_seconds_max
        self._key: Any = None
        self._opened: OpenedModel | None = None
        self._opened_seconds = 0.0

    @contextmanager
    def lent(
        self, paths: tuple[str, ...], key: Any, make: Callable[[], OpenedModel]
    ) -> Iterator[OpenedModel]:
        """A model for one question. ``paths``: of its files; (): a live cluster. ``key``: all else
        that the model depends on. Raises as ``make``."""
        opened = self._fresh((key, _versions(paths)), is_live=not paths, make=make)
        with opened.model.trial():
            yield opened

    def forget(self) -> None:
        """Close the model: the next question reads the cluster anew."""
        if self._opened is None:
            return
        self._opened.model.close()
        self._opened = self._key = None
        # The objects of the model were excluded from the collection.
        gc.unfreeze()
        gc.collect()

    def _fresh(self, key: Any, *, is_live: bool, make: Callable[[], OpenedModel]) -> OpenedModel:
        now = self._clock.now()
        is_old = is_live and now - self._opened_seconds > self._age_seconds_max
        if self._opened is None or self._key != key or is_old:
            self.forget()
            self._opened, self._key, self._opened_seconds = make(), key, now
        return self._opened


#: The models of the process; None: each question opens its own.
_MODELS: ContextVar[WarmModels | None] = ContextVar("bayplan_warm_models", default=None)


def warm_models() -> WarmModels | None:
    """The models that are lent in this context."""
    return _MODELS.get()


@contextmanager
def lend_warm_models(models: WarmModels) -> Iterator[None]:
    """Questions in the block use these models."""
    token = _MODELS.set(models)
    try:
        yield
    finally:
        _MODELS.reset(token)


def _versions(paths: tuple[str, ...]) -> tuple[tuple[str, int, int], ...]:
    """What changes when a file changes: of each file its name, time of change and size."""
    files = (file for path in paths for file in _files(Path(path)))
    statuses = ((str(file), file.stat()) for file in files)
    return tuple((name, status.st_mtime_ns, status.st_size) for name, status in statuses)


def _files(path: Path) -> list[Path]:
    """A file, or the files of a folder. A missing one is the command's own error."""
    if path.is_dir():
        return sorted(file for file in path.rglob("*") if file.is_file())
    return [path] if path.is_file() else []
