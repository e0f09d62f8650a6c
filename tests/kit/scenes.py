"""Tests that are coroutines: scenes, played in a world that a function of the test file makes.

A coroutine that needs no world is a test already: `tests/conftest.py` runs it.
"""

import inspect
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any


def scene_of(
    play: Callable[..., Any], count: int = 1, **options: Any
) -> Callable[[Callable[..., Awaitable[Any]]], Callable[..., None]]:
    """Make a test of a scene, which is a coroutine function. Its first arguments are those that
    ``play`` gives, ``count`` of them; all others are fixtures and parameters of the test.
    ``options``: those of ``play``."""

    def test_of(scene: Callable[..., Awaitable[Any]]) -> Callable[..., None]:
        @wraps(scene)
        def test(**fixtures: Any) -> None:
            play(lambda *given: scene(*given, **fixtures), **options)

        signature = inspect.signature(scene)
        fixtures = [*signature.parameters.values()][count:]
        test.__signature__ = signature.replace(parameters=fixtures)  # type: ignore[attr-defined]
        return test

    return test_of
