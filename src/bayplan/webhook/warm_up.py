"""Warm-up: the first judgement of each kind fills caches and takes some tenths of a second."""

from contextlib import suppress
from typing import Any

from bayplan.api.objects import DAEMON_SET, DEPLOYMENT, POD
from bayplan.model.cluster_model import ClusterModel
from bayplan.objects.keys import DEFAULT_NAMESPACE
from bayplan.problems import BadInputError
from bayplan.webhook.judgement import Judge

#: One that fits on most nodes, and one that fits on none.
_CPUS = ("1m", "1000000")


def warm_up(judge: Judge, model: ClusterModel) -> None:
    """Judge pods and workloads of each profile that are made up."""
    for scheduler in model.scheduler.profile_names:
        for cpu in _CPUS:
            spec = _spec(scheduler, cpu)
            judge.judge(POD, DEFAULT_NAMESPACE, {"metadata": {"name": "warm-up"}, "spec": spec})
            for kind in (DEPLOYMENT, DAEMON_SET):
                # A LimitRange may refuse what is made up.
                with suppress(BadInputError):
                    judge.judge(kind, DEFAULT_NAMESPACE, _workload(spec))


def _spec(scheduler: str, cpu: str) -> dict[str, Any]:
    container = {"name": "c", "image": "warm-up", "resources": {"requests": {"cpu": cpu}}}
    return {"schedulerName": scheduler, "containers": [container]}


def _workload(spec: dict[str, Any]) -> dict[str, Any]:
    labels = {"app": "warm-up"}
    template = {"metadata": {"labels": labels}, "spec": spec}
    selector = {"matchLabels": labels}
    return {"metadata": {"name": "warm-up"}, "spec": {"selector": selector, "template": template}}
