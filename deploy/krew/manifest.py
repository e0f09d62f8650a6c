"""Writes the archive of the kubectl plugin and its manifest for krew.

    python deploy/krew/manifest.py https://HOST/PATH/OF/THE/RELEASES dist

The archive is at RELEASES/vVERSION/kubectl-bayplan.tar.gz, and the version is that of the package.
"""

import gzip
import hashlib
import io
import sys
import tarfile
from pathlib import Path
from string import Template
from urllib.parse import urlsplit

from bayplan import __version__

KREW = Path(__file__).resolve().parent
ARCHIVE = "kubectl-bayplan.tar.gz"
#: Name in the archive → file.
_FILES = {"kubectl-bayplan": KREW / "kubectl-bayplan", "LICENSE": KREW.parents[1] / "LICENSE"}


def archive() -> bytes:
    """The archive; equal files give equal bytes."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w") as tar,
    ):
        for name, path in _FILES.items():
            content = path.read_bytes()
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), path.stat().st_mode & 0o755
            tar.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def manifest(releases: str, packed: bytes) -> str:
    """The manifest of this version. ``releases``: an https URL. Raises ValueError."""
    parts = urlsplit(releases)
    if parts.scheme != "https" or not parts.hostname:
        raise ValueError(f"found {releases}, wanted an https URL under which the releases are")
    version = f"v{__version__}"
    return Template((KREW / "bayplan.yaml").read_text()).substitute(
        version=version,
        uri=f"{releases.rstrip('/')}/{version}/{ARCHIVE}",
        sha256=hashlib.sha256(packed).hexdigest(),
    )


def main(releases: str, folder: str) -> None:
    """Write both files into a folder."""
    packed = archive()
    text = manifest(releases, packed)
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    (target / ARCHIVE).write_bytes(packed)
    (target / "bayplan.yaml").write_text(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
