"""Objects kept as the API server wrote them."""

import json
from typing import Any

import msgspec

from bayplan.adapters.live.originals import Originals
from bayplan.api.objects import NODE, POD, decode
from bayplan.ports import EventType, WatchEvent


def raw(name: str, **more: Any) -> msgspec.Raw:
    meta = {"name": name, "namespace": "default", "uid": name, "managedFields": [{}]}
    return msgspec.Raw(json.dumps({"kind": "Pod", "metadata": meta, "spec": {}, **more}).encode())


def note(kept: Originals, event: EventType, found: msgspec.Raw, kind: str = POD) -> None:
    kept.note(WatchEvent(event, kind, decode(kind, bytes(found))), found)


def whole(kept: Originals, name: str) -> Any:
    found = kept.whole(POD, "default", name)
    return None if found is None else json.loads(found)


def test_what_was_watched_is_given_back_whole_but_trimmed() -> None:
    kept = Originals([POD])
    note(kept, EventType.ADDED, raw("p", spec={"dnsPolicy": "Default"}))
    expected = {
        "metadata": {"name": "p", "namespace": "default", "uid": "p"},
        "spec": {"dnsPolicy": "Default"},
    }
    assert whole(kept, "p") == expected
    assert whole(kept, "p") == expected


def test_the_newest_counts_and_what_is_deleted_is_gone() -> None:
    kept = Originals([POD])
    note(kept, EventType.ADDED, raw("p"))
    note(kept, EventType.MODIFIED, raw("p", spec={"nodeName": "n1"}))
    assert whole(kept, "p")["spec"] == {"nodeName": "n1"}
    note(kept, EventType.DELETED, raw("p"))
    assert whole(kept, "p") is None


def test_a_list_replaces_everything_when_its_last_page_has_come() -> None:
    kept = Originals([POD])
    note(kept, EventType.ADDED, raw("old"))
    listing = kept.listing(POD)
    assert listing is not None
    listing.add([(decode(POD, bytes(raw("p"))), raw("p"))])
    assert whole(kept, "old") is not None
    listing.end()
    assert whole(kept, "old") is None
    assert whole(kept, "p") is not None


def test_kinds_that_nobody_sends_on_are_not_kept() -> None:
    kept = Originals([POD])
    note(kept, EventType.ADDED, raw("n1"), NODE)
    assert kept.whole(NODE, "", "n1") is None
    assert kept.listing(NODE) is None
