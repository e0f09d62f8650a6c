"""What makes two runs the same run."""

from pathlib import Path

import pytest

from bayplan.comparison import identity
from bayplan.comparison.identity import code_digest, key_of


def test_a_key_follows_from_the_parts_and_not_from_their_order_in_a_mapping() -> None:
    assert key_of({"a": 1, "b": 2}) == key_of({"b": 2, "a": 1})
    assert key_of({"a": 1}) != key_of({"a": 2})


def test_code_that_was_edited_makes_other_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "policy.py"
    monkeypatch.setattr(identity, "_sources", lambda _package: [file])
    keys = []
    for text in ("x = 1", "x = 2", "x = 1"):
        file.write_text(text)
        code_digest.cache_clear()
        keys.append(key_of("run"))
    code_digest.cache_clear()
    assert keys[0] == keys[2] != keys[1]
