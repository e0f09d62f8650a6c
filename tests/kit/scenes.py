"""Tests that are coroutines: scenes, played in a world that a function of the test file makes.

A coroutine that needs no world is a test already: `tests/conftest.py` runs it.
"""

import inspect
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any


def scene_of(
    play: Callable[..., Any], count: int = 1, *, place: str = "", **options: Any
) -> Callable[[Callable[..., Awaitable[Any]]], Callable[..., None]]:
    """Make a test of a scene, which is a coroutine function. Its first arguments are those that
    ``play`` gives, ``count`` of them; all others are fixtures and parameters of the test.
    ``place``: the name of a fixture that ``play`` takes before the scene. ``options``: those of
    ``play``."""

    def test_of(scene: Callable[..., Awaitable[Any]]) -> Callable[..., None]:
        parameters = inspect.signature(scene).parameters
        own = list(parameters)[count:]

        @wraps(scene)
        def test(**fixtures: Any) -> None:
            chosen = {name: fixtures[name] for name in own}
            places = [fixtures[place]] if place else []
            play(*places, lambda *given: scene(*given, **chosen), **options)

        names = dict.fromkeys([place, *own] if place else own)
        kind = inspect.Parameter.KEYWORD_ONLY
        test.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in names])  # type: ignore[attr-defined]
        return test

    return test_of
