"""Fewer searches for garbage where nearly all new objects stay in use: a search visits all of them,
and finds nothing."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

#: How many objects more there are before they are searched. With Python's 700, an eighth of a
#: simulation is search.
_NEW_OBJECTS = 100_000
#: How many searches precede one that includes the objects of earlier ones.
_SEARCHES = (20, 100)


@contextmanager
def rarely_collected(new_objects: int = _NEW_OBJECTS) -> Iterator[None]:
    """Few searches in the block. ``new_objects``: how many more there are before a search."""
    before = gc.get_threshold()
    gc.set_threshold(new_objects, *_SEARCHES)
    try:
        yield
    finally:
        gc.set_threshold(*before)
