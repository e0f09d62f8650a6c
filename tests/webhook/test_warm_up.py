"""The warm-up leaves no trace, also where admission refuses what is made up."""

from bayplan.api.admission_objects import LIMIT_RANGE
from bayplan.api.objects import NODE, decode
from bayplan.config import SchedulerConfig
from bayplan.model.cluster_model import ClusterModel
from bayplan.model.picture import ClusterPicture
from bayplan.objects.object_store import store_of
from bayplan.plugins.registry import default_registry
from bayplan.testing import node
from bayplan.webhook.judgement import Judge
from bayplan.webhook.warm_up import warm_up


def test_the_warm_up_leaves_the_model_as_it_was() -> None:
    narrow = {
        "metadata": {"name": "narrow", "namespace": "default"},
        "spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]},
    }
    objects = {NODE: (node("n1"),), LIMIT_RANGE: (decode(LIMIT_RANGE, narrow),)}
    config, registry = SchedulerConfig(), default_registry(())
    model = ClusterModel(ClusterPicture(store_of(objects)), config, registry)
    before = [key for key, _ in model.all()]
    warm_up(Judge(model, config, registry), model)
    assert [key for key, _ in model.all()] == before
    assert model.pending() == []
