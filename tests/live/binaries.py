"""Where etcd and kube-apiserver come from.

From $KUBEBUILDER_ASSETS where that is set, as is the convention of the field; else from a cache
folder, where they are built once from the Go module beside this file.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAMS = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
}
MODULE = Path(__file__).with_name("control_plane")
HOW_TO_GET_THEM = (
    "the live tests need etcd and kube-apiserver: set KUBEBUILDER_ASSETS to a folder that holds "
    "both, or install Go 1.26 or newer, and they are built once"
)


class NoBinaries(Exception):
    """There are none, and they cannot be built; the message says how to get them."""


def found() -> Path | None:
    """The folder with both programs, if there is one already. Raises NoBinaries."""
    given = os.environ.get("KUBEBUILDER_ASSETS")
    if not given:
        return cache() if _missing(cache()) == [] else None
    missing = _missing(Path(given))
    if missing:
        raise NoBinaries(f"KUBEBUILDER_ASSETS={given} has no {' and no '.join(missing)}")
    return Path(given)


def cache() -> Path:
    """A folder of its own for each version of the module."""
    text = b"".join((MODULE / name).read_bytes() for name in ("go.mod", "go.sum"))
    root = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    digest = hashlib.sha256(text).hexdigest()[:12]
    return Path(root).expanduser() / "bayplan" / f"control-plane-{digest}"


def _missing(folder: Path) -> list[str]:
    return [name for name in PROGRAMS if not os.access(folder / name, os.X_OK)]


def build() -> Path:
    """Build both. Raises NoBinaries."""
    go = shutil.which("go")
    if go is None:
        raise NoBinaries(HOW_TO_GET_THEM)
    print(f"building etcd and kube-apiserver into {cache()}; minutes, once", flush=True)
    cache().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache().parent) as folder:
        for name, package in PROGRAMS.items():
            command = [go, "build", "-trimpath", "-o", f"{folder}/{name}", package]
            if subprocess.run(command, cwd=MODULE, check=False).returncode:
                raise NoBinaries(f"{name} could not be built; {HOW_TO_GET_THEM}")
            # Whole or not at all, also when somebody else builds at the same time.
            (Path(folder) / name).replace(cache() / name)
    return cache()


def main() -> None:
    try:
        print(found() or build())
    except NoBinaries as problem:
        sys.exit(str(problem))


if __name__ == "__main__":
    main()
