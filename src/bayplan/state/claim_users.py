"""Which nodes have pods that use a claim: counted as pods come and go."""

from collections import Counter

from bayplan.api.objects import namespaced_name
from bayplan.state.pods import PodInfo


class ClaimUsers:
    """Claim ("namespace/name") → where its users are, and how many name it."""

    def __init__(self) -> None:
        #: Row → pods there that use the claim, also as one made for the pod alone.
        self._rows: dict[str, Counter[int]] = {}
        #: Volumes that name the claim.
        self._named: Counter[str] = Counter()

    def add(self, row: int, pod: PodInfo) -> None:
        for key in pod.claim_keys():
            self._rows.setdefault(key, Counter())[row] += 1
        self._named.update(named_claims(pod))

    def remove(self, row: int, pod: PodInfo) -> None:
        for key in pod.claim_keys():
            rows = self._rows[key]
            rows[row] -= 1
            if not rows[row]:
                del rows[row]
            if not rows:
                del self._rows[key]
        for key in named_claims(pod):
            self._named[key] -= 1
            if not self._named[key]:
                del self._named[key]

    def named_count(self, key: str) -> int:
        """How many volumes of placed pods, assumed ones included, name a claim."""
        return self._named[key]

    def rows(self, key: str) -> list[int]:
        """Where the pods are that use a claim, ascending."""
        return sorted(self._rows.get(key, ()))


def named_claims(pod: PodInfo) -> list[str]:
    """Claims that the pod's volumes name, each as often as they do."""
    names = pod.shape.volumes.claim_names()
    return [namespaced_name(pod.namespace, name) for name in names]
