"""Files that somebody else may have made."""

import os
import socket
from pathlib import Path

import pytest

from bayplan.regular_files import read_regular_file


def test_a_regular_file_is_read_up_to_its_size(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * (1 << 20))
    assert len(read_regular_file(tmp_path / "file", 1 << 20)) == 1 << 20
    with pytest.raises(OSError, match="larger than 0 MiB"):
        read_regular_file(tmp_path / "file", (1 << 20) - 1)


def test_what_has_no_end_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        for name, kind in (("fifo", "a FIFO"), ("link", "a device"), (".", "a folder")):
            with pytest.raises(OSError, match=f"found {kind}, wanted a regular file"):
                read_regular_file(tmp_path / name, 10)
        with pytest.raises(OSError, match="socket"):
            read_regular_file(tmp_path / "socket", 10)
