"""Objects as the API server wrote them, for those who are shown them whole.

Decoded objects keep what a scheduler reads. What is sent on to an extender must be complete, so the
bytes are kept as they came, of the kinds that somebody sends on, and made fit to be sent when they
first are: most never are.
"""

from collections.abc import Iterable
from typing import final

import msgspec

from bayplan.adapters.whole_objects import trimmed
from bayplan.api.objects import ApiObject
from bayplan.ports import EventType, WatchEvent

_Key = tuple[str, str]


@final
class _Original:
    __slots__ = ("_content", "_is_trimmed")

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._is_trimmed = False

    def content(self) -> bytes:
        if not self._is_trimmed:
            self._content = trimmed(msgspec.json.decode(self._content))
            self._is_trimmed = True
        return self._content


@final
class Listing:
    """The pages of one list; until its end, what was known before is."""

    def __init__(self, kept: dict[_Key, _Original]) -> None:
        self._kept = kept
        self._found: dict[_Key, _Original] = {}

    def add(self, read: Iterable[tuple[ApiObject, msgspec.Raw]]) -> None:
        self._found |= {_key(each): _Original(bytes(raw)) for each, raw in read}

    def end(self) -> None:
        self._kept.clear()
        self._kept |= self._found


@final
class Originals:
    """Everything read of some kinds, by namespace and name."""

    def __init__(self, kinds: Iterable[str]) -> None:
        self._kept: dict[str, dict[_Key, _Original]] = {kind: {} for kind in kinds}

    def listing(self, kind: str) -> Listing | None:
        """A list of this kind begins; None: nobody wants it."""
        kept = self._kept.get(kind)
        return None if kept is None else Listing(kept)

    def note(self, event: WatchEvent, raw: msgspec.Raw) -> None:
        """One object changed."""
        kept = self._kept.get(event.kind)
        if kept is None:
            return
        if event.type is EventType.DELETED:
            kept.pop(_key(event.object), None)
        else:
            kept[_key(event.object)] = _Original(bytes(raw))

    def whole(self, kind: str, namespace: str, name: str) -> bytes | None:
        """See adapters.whole_objects.WholeObjects."""
        found = self._kept.get(kind, {}).get((namespace, name))
        return None if found is None else found.content()


def _key(found: ApiObject) -> _Key:
    return found.metadata.namespace or "", found.metadata.name
