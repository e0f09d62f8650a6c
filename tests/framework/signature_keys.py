"""Signatures of many pods, in this process or in another one."""

from collections.abc import Hashable
from typing import Any, final

from bayplan.framework.plugin import Caching, ScalarScorePlugin, SignPlugin
from bayplan.framework.signing import Signer
from bayplan.framework.types import Normalizer
from bayplan.plugins.registry import in_tree_plugins
from bayplan.state.pods import PodInfo
from bayplan.testing.factories import pod
from tests.framework.answering import plugins_of


@final
class SetOfLabels(ScalarScorePlugin, SignPlugin):
    name = "SetOfLabels"
    normalizer = Normalizer.NONE
    caching = Caching(signs_template=True)

    def score_node(self, state: Any, pod: Any, node: Any) -> int:
        return 0

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return (frozenset((k, v) for k, v in pod.labels.items()),)


def signer_of(*plugins: Any) -> Signer:
    return Signer(plugins_of(*plugins))


def keys_of_many() -> list[str]:
    """Keys of pods with many labels under all in-tree plugins and one that signs sets, sorted."""
    in_tree = [p for p in in_tree_plugins() if issubclass(p, SignPlugin)]
    signer = signer_of(*in_tree, SetOfLabels)
    pods = [
        pod(
            labels={f"key-{n}": str(n) for n in range(count)},
            tolerations=[{"key": f"t{n}", "operator": "Exists"} for n in range(count)],
            node_selector={f"s{n}": "x" for n in range(count)},
            requests={f"example.com/r{n}": 1 for n in range(count)},
            host_ports=range(80, 80 + count),
        )
        for count in range(8)
    ]
    return sorted(repr(signer.sign(each).key) for each in pods)
