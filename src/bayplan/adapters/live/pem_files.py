"""Certificates and keys as files, as OpenSSL wants them, without leaving them on a disk."""

import contextlib
import os
import tempfile
from collections.abc import Generator


@contextlib.contextmanager
def as_file(content: bytes) -> Generator[str]:
    """A path that OpenSSL can read; on Linux no disk is touched, and the root may be read-only."""
    if not hasattr(os, "memfd_create"):
        with tempfile.NamedTemporaryFile() as file:
            file.write(content)
            file.flush()
            yield file.name
        return
    descriptor = os.memfd_create("pem", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, content)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
