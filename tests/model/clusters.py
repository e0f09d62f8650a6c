"""Models of small clusters for tests."""

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from bayplan.api.objects import NODE, POD, ApiObject, Node, Pod
from bayplan.config import SchedulerConfig
from bayplan.model.cluster_model import ClusterModel
from bayplan.model.picture import ClusterPicture
from bayplan.objects.object_store import store_of
from bayplan.plugins.registry import default_registry
from bayplan.state.pods import PodInfo

NONE: Mapping[str, Iterable[ApiObject]] = {}


def model_of(
    nodes: Iterable[Node],
    pods: Iterable[PodInfo] = (),
    objects: Mapping[str, Iterable[ApiObject]] = NONE,
) -> ClusterModel:
    """A model with these objects. ``objects``: the objects of further kinds."""
    by_kind = {NODE: tuple(nodes), **{kind: tuple(each) for kind, each in objects.items()}}
    by_kind[POD] = tuple(_with_images(each.pod) for each in pods)
    return ClusterModel(ClusterPicture(store_of(by_kind)), SchedulerConfig(), default_registry(()))


def _with_images(pod: Pod) -> Pod:
    """The pod as a server may have stored it: each container names an image."""
    containers = [replace(one, image=one.image or "app") for one in pod.spec.containers or ()]
    return replace(pod, spec=replace(pod.spec, containers=tuple(containers)))
