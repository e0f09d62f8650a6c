"""Names that a user writes and that a cluster does not have: what the answer says, with the name
that is probably meant."""

from collections.abc import Collection

from bayplan.api.objects import NAMESPACE, NODE
from bayplan.model.cluster_model import ClusterModel
from bayplan.objects.keys import DEFAULT_NAMESPACE
from bayplan.problems import suggestion

_ALWAYS = (DEFAULT_NAMESPACE, "kube-system")


def no_node(model: ClusterModel, name: str) -> str:
    """That there is no such node."""
    return _unknown("node", name, [each.metadata.name for each in model.objects(NODE)])


def no_namespace(model: ClusterModel, name: str) -> str:
    """That there is no such namespace; "" if there is one, or an object in it."""
    names = {each.metadata.name for each in model.objects(NAMESPACE)}
    if name in names or name in _ALWAYS:
        return ""
    names |= {key.namespace for key, _ in model.store if key.namespace}
    return "" if name in names else _unknown("namespace", name, names)


def _unknown(noun: str, name: str, names: Collection[str]) -> str:
    hint = suggestion(name, names)
    return f"there is no {noun} {name}" + (f"; {hint}" if hint else "")
