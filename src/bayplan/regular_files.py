"""Files that somebody else may have made: read only if they are regular, and up to a size.

Opening a FIFO waits for a writer, and a device such as /dev/zero has no end. A path that names one
is refused with an OSError, whose `strerror` says why.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

#: Does not wait for the writer of a FIFO. Windows has neither.
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_FLAGS |= getattr(os, "O_BINARY", 0)
_PART_BYTES = 1 << 20
_LINE_BYTES_MAX = 64 << 20


def read_regular_file(path: Path, bytes_max: int) -> bytes:
    """The content of a regular file. Raises OSError for others, and for more than ``bytes_max``."""
    descriptor = open_regular_file(path)
    try:
        parts: list[bytes] = []
        # A file that grows meanwhile is bounded, too.
        room = 0 if os.fstat(descriptor).st_size > bytes_max else bytes_max + 1
        while room > 0 and (part := os.read(descriptor, min(room, _PART_BYTES))):
            parts.append(part)
            room -= len(part)
    finally:
        os.close(descriptor)
    if room <= 0:
        raise OSError(errno.EFBIG, f"larger than {bytes_max >> 20} MiB", str(path))
    return b"".join(parts)


def lines_of_regular_file(path: Path) -> Iterator[bytes]:
    """The lines of a regular file, each with its end. Raises OSError, also for a long line."""
    with os.fdopen(open_regular_file(path), "rb") as file:
        while line := file.readline(_LINE_BYTES_MAX):
            if len(line) == _LINE_BYTES_MAX:
                text = f"a line is longer than {_LINE_BYTES_MAX >> 20} MiB"
                raise OSError(errno.EFBIG, text, str(path))
            yield line


def open_regular_file(path: Path) -> int:
    """A descriptor for reading, which the caller closes. Raises OSError."""
    descriptor = os.open(path, _FLAGS)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    with suppress(OSError):
        os.close(descriptor)
    number = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
    raise OSError(number, f"found {_kind_of(mode)}, wanted a regular file", str(path))


def kind_of_entry(path: Path) -> str | None:
    """What an entry of a folder is that is no regular file and no link to one: "a FIFO", "a broken
    link to x". None: a regular file, or one of which nothing is known."""
    link = f"link to {path.readlink()}" if path.is_symlink() else ""
    try:
        mode = path.stat().st_mode
    except OSError as problem:
        is_broken = link and problem.errno in (errno.ENOENT, errno.ELOOP, errno.ENOTDIR)
        return f"a broken {link}" if is_broken else None
    if stat.S_ISREG(mode):
        return None
    return f"{_kind_of(mode)}, by a {link}" if link else _kind_of(mode)


def _kind_of(mode: int) -> str:
    kinds = (
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISFIFO, "a FIFO"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a device"),
    )
    return next((name for is_kind, name in kinds if is_kind(mode)), "no file")
