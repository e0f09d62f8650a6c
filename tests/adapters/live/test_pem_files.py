"""Contents as files."""

from pathlib import Path

import pytest

from bayplan.adapters.live.pem_files import as_file


def test_a_content_can_be_read_under_its_path_while_the_block_lasts() -> None:
    with as_file(b"content") as path:
        assert Path(path).read_bytes() == b"content"
    assert not Path(path).exists()


def test_where_there_are_no_files_in_memory_it_is_a_short_lived_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr("os.memfd_create", raising=False)
    with as_file(b"content") as path:
        assert Path(path).read_bytes() == b"content"
    assert not Path(path).exists()
