"""`bayplan fit --max` beside the real kube-scheduler: equal counts.

The pods of a drawn workload are created one by one until the first stays pending. Their number is
the one that `bayplan fit --max` counts before.

Which of equal nodes gets a pod is drawn, and in some clusters the count depends on it: a pod that
wants its own kind beside it stays in the zone of the first one. The count is then computed with
several seeds. If the seeds disagree, the case depends on ties, and the real count must be one of
theirs. All other counts must be equal.

$BAYPLAN_FIT_SHAPES: how many workloads; $BAYPLAN_FIT_SEED: others; $BAYPLAN_FIT_SHAPE: only this
number, as a failure prints it.
"""

import asyncio
import json
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from bayplan.adapters.live.client import ClientOptions, open_client
from bayplan.config import SchedulerConfig
from bayplan.config.pod_group_kinds import group_kinds
from bayplan.model.additions import AdditionsReader
from bayplan.model.cluster_model import ClusterModel
from bayplan.model.live_reading import model_of_cluster
from bayplan.model.picture import ClusterPicture
from bayplan.plugins.registry import default_registry
from bayplan.whatif.copies import single_unit
from bayplan.whatif.fit import max_fit
from tests.cli.command_line import bayplan, write_objects
from tests.live.beside import Cluster, condition_of, kube_scheduler, node_of
from tests.live.control_plane import ControlPlane
from tests.live.counted_shapes import Case, drawn_case, storage_classes

pytestmark = pytest.mark.timeout(3000)

SHAPES = int(os.environ.get("BAYPLAN_FIT_SHAPES", "50"))
SEED = os.environ.get("BAYPLAN_FIT_SEED", "shapes")
ONLY = os.environ.get("BAYPLAN_FIT_SHAPE")
#: Seeds of Bayplan's tie-breaks besides the one of the command.
TIE_SEEDS = range(1, 33)
#: More than any drawn cluster has room for.
COUNT_MAX = 80
SETTLE_SECONDS = 0.5
ATTEMPT_SECONDS = 15.0
#: A pod that is unschedulable for longer than its backoff stays pending.
PENDING_SECONDS = 1.6


@dataclass(frozen=True)
class Count:
    pods: int
    message: str


def counted(case: Case, kubeconfig: str, folder: Path) -> Count:
    """The answer of the command."""
    path = write_objects(folder / f"{case.name}.json", case.workload)
    result = bayplan("fit", "-f", path, "--max", "-o", "json", "--kubeconfig", kubeconfig)
    assert result.exit_code in (0, 1), result.stderr
    answer = json.loads(result.stdout)["max"]
    assert not answer.get("isLimit")
    return Count(answer["count"], answer["message"])


def counts_by_seeds(objects: ClusterPicture, case: Case) -> set[int]:
    """The counts of the same cluster with other tie-breaks."""
    registry, config = default_registry(()), SchedulerConfig()
    kinds = group_kinds(config.spec.pod_groups.kinds)
    counts: set[int] = set()
    for seed in TIE_SEEDS:
        model = ClusterModel(objects, config, registry, seed=seed)
        try:
            additions = AdditionsReader(model, registry.kinds)([case.workload])
            counts.add(max_fit(model, single_unit(additions, kinds)).count)
        finally:
            model.close()
    return counts


async def bound_in_turn(cluster: Cluster, case: Case) -> Count:
    """Create pods one by one until the first stays pending."""
    workload = await cluster.path(case.workload)
    await cluster.create(case.workload)
    uid = (await cluster.client.get(workload))["metadata"]["uid"]
    await asyncio.sleep(SETTLE_SECONDS)
    for number in range(COUNT_MAX):
        claims, created = case.pod(number, uid)
        for each in (*claims, created):
            await cluster.create(each)
        path = await cluster.path(created)
        pod = await cluster.until(
            path, ATTEMPT_SECONDS, lambda p: bool(condition_of(p) or node_of(p))
        )
        if not node_of(pod):
            pod = await cluster.until(path, PENDING_SECONDS, node_of)
        if not node_of(pod):
            return Count(number, condition_of(pod).get("message", ""))
    raise AssertionError(f"{COUNT_MAX} pods and more")


async def compare(
    cluster: Cluster, kubeconfig: str, number: int, folder: Path, counts: Counter[str]
) -> str:
    """The difference, or "" if there is none."""
    case = drawn_case(number, SEED)
    for each in (*storage_classes(), *case.objects):
        await cluster.create(each)
    ours = await asyncio.to_thread(counted, case, kubeconfig, folder)
    model = await model_of_cluster(cluster.client, SchedulerConfig(), default_registry(()))
    model.close()
    seed_counts = await asyncio.to_thread(counts_by_seeds, model.source, case)
    theirs = await bound_in_turn(cluster, case)
    await cluster.empty()
    of_seeds = sorted({ours.pods, *seed_counts})
    counts["shapes"] += 1
    counts["pods bound"] += theirs.pods
    counts["shapes that fit nowhere"] += not theirs.pods
    head = f"{case.name} ({', '.join(case.families)})"
    if len(of_seeds) > 1:
        counts["depends on ties"] += 1
        counts["depends on ties, count of a seed"] += theirs.pods in of_seeds
        print(f"{head}: depends on ties: {of_seeds}; kube-scheduler: {theirs.pods}")
        return "" if theirs.pods in of_seeds else f"{head}: {of_seeds} for {theirs.pods}"
    if ours.pods != theirs.pods:
        return f"{head}: {ours} for {theirs}"
    print(f"{head}: {theirs.pods}")
    counts["same count"] += 1
    counts["same message of the next"] += ours.message == theirs.message
    if ours.message != theirs.message:
        print(f"{head}: {ours.message!r} for {theirs.message!r}")
    return ""


def test_fit_counts_the_pods_that_kube_scheduler_binds(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    counts: Counter[str] = Counter()
    differences: list[str] = []
    kubeconfig = control_plane.kubeconfig("admin")

    async def main() -> None:
        numbers = range(SHAPES) if ONLY is None else [int(ONLY)]
        async with open_client(kubeconfig, ClientOptions(qps=-1)) as client:
            cluster = Cluster(client)
            await cluster.empty()
            for number in numbers:
                difference = await compare(cluster, kubeconfig, number, tmp_path, counts)
                if difference:
                    replay = f"BAYPLAN_FIT_SEED={SEED} BAYPLAN_FIT_SHAPE={number}"
                    differences.append(f"{difference}\n  {replay} pytest -s {__file__}")

    with kube_scheduler(control_plane, tmp_path):
        asyncio.run(main())
    print(f"seed {SEED!r}:", dict(counts), *differences, sep="\n")
    assert not differences, differences
    assert counts["same count"] + counts["depends on ties"] == counts["shapes"]
    assert ONLY or counts["depends on ties"] <= 0.1 * SHAPES
