"""Strict signatures: a plugin fails if it reads a part of a pod that its `sign_pod` does not read.

Results are cached for pods with equal signatures. A plugin that reads more than it signs gives one
pod the results of another. `check_plugin` finds such a plugin in tests; `strictSignatures` of a
profile finds it in a running scheduler, with the pods of that cluster. Each call hands the plugin a
stand-in of the pod that records what is read, so attempts take several times as long.
"""

from collections.abc import Callable
from typing import Any, Final, final

from bayplan.framework.plugin import Plugin, SignPlugin
from bayplan.framework.recorded_pod import Reads, recorded_pod
from bayplan.framework.signing import part_of
from bayplan.state.pods import PodInfo

#: The methods whose results are cached by signature. All are called with (state, pod, …).
SIGNED_METHODS: Final = (
    "pre_filter",
    "filter",
    "filter_node",
    "filter_row",
    "pre_score",
    "score",
    "score_node",
    "score_row",
    "normalize",
    "tie_break",
)


class UnsignedRead(Exception):
    """A plugin read a part of a pod that it does not sign."""

    def __init__(self, method: str, paths: list[str]) -> None:
        super().__init__(
            f"{method} reads {', '.join(paths)}, which sign_pod does not read: pods that differ "
            f"there get each other's results; sign it, or return None from sign_pod for such pods"
        )


def enforce_signature(plugin: Plugin) -> None:
    """Replace the instance's methods by calls that raise `UnsignedRead`.

    A plugin that does not sign is not restricted, nor is its call for a pod that it does not sign
    (`part_of` is None): such results are not cached.
    """
    if not isinstance(plugin, SignPlugin) or plugin.caching is None:
        return
    for name in SIGNED_METHODS:
        method = getattr(plugin, name, None)
        if method is not None:
            setattr(plugin, name, _StrictCall(plugin, name, method))


@final
class _StrictCall:
    """One method of one instance, called with a stand-in of the pod."""

    def __init__(self, plugin: SignPlugin, name: str, method: Callable[..., Any]) -> None:
        self._plugin = plugin
        self._name = name
        self._method = method

    def __call__(self, state: Any, pod: PodInfo, *arguments: Any) -> Any:
        signed, reads = Reads(), Reads()
        if part_of(self._plugin, recorded_pod(pod, signed)) is None:
            return self._method(state, pod, *arguments)
        result = self._method(state, recorded_pod(pod, reads), *arguments)
        unsigned = reads.beyond(signed)
        if unsigned:
            raise UnsignedRead(self._name, unsigned)
        return result
