"""Where a replica runs and who it is: the pod's namespace, the host's name."""

import os
import socket
from pathlib import Path

from bayplan.rng import unique_token
from bayplan.serving.election import identity_of

_NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
#: Outside of a pod, as upstream.
DEFAULT_NAMESPACE = "kube-system"


def own_namespace(namespace_file: Path = _NAMESPACE_FILE) -> str:
    """The namespace that the scheduler's own objects are in."""
    given = os.environ.get("POD_NAMESPACE", "")
    if given:
        return given
    try:
        return namespace_file.read_text(encoding="utf-8").strip() or DEFAULT_NAMESPACE
    except OSError:
        return DEFAULT_NAMESPACE


def new_identity() -> str:
    """Another one each time."""
    return identity_of(os.environ.get("POD_NAME", "") or socket.gethostname(), unique_token())
