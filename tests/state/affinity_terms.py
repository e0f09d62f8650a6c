"""Terms of a pod's affinity, as in a manifest."""

from typing import Any

from bayplan.api.objects import HOSTNAME_LABEL

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def term(
    labels: dict[str, str] | None = None, *, key: str = HOSTNAME_LABEL, **fields: Any
) -> dict[str, Any]:
    """A pod affinity term; without ``labels`` it selects every pod."""
    selector = {"matchLabels": labels} if labels is not None else {}
    return {"labelSelector": selector, "topologyKey": key, **fields}


def weighted(weight: int, of: dict[str, Any]) -> dict[str, Any]:
    return {"weight": weight, "podAffinityTerm": of}
