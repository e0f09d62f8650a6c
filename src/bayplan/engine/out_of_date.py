"""Why a ranking is thrown away: upstream's words where it flushes its cache for the like of it."""

NODES_CAME_OR_WENT = "node_missing"
TOO_MUCH_CHANGED = "expired"
OTHER_PLUGINS = "pod_incompatible"
EXTREME_MOVED = "normalize_error"
PLUGIN_FAILED = "rescore_error"


class OutOfDate(Exception):
    """A ranking cannot be corrected row by row; the answers it was made from still hold."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
