"""Clusters with all kinds of workload controllers, and disruptions of their pods: seeded worlds."""

from collections import Counter
from pathlib import Path

from bayplan.rng import stream
from bayplan.sim.output.result import SimulationResult
from tests.kit.manifests import Content, container, node, pod, priority_class
from tests.sim.manifests import controller, scenario, template
from tests.sim.runs import living, load_objects, run_by_default

SELECTOR = {"matchLabels": {"app": "web"}}
NODES = tuple(f"n{number}" for number in range(5))
#: Longer than any grace period.
CALM_SECONDS = 1000


class Disruptions:
    """A cluster with all kinds of controllers, and the disruptions of its pods and nodes."""

    def __init__(self, seed: int) -> None:
        self._random = stream(seed, "disruptions")
        self.there = set(NODES)
        self.controllers = self._controllers()
        #: The delay after which controllers replace deleted pods.
        self.delay_seconds = self._random.choice((0, 3, 20))

    def _controllers(self) -> list[Content]:
        draw = self._random
        grace = template(
            terminationGracePeriodSeconds=draw.choice((0, 30)), containers=[container("500m")]
        )
        policy = draw.choice(("Parallel", "OrderedReady"))
        many = draw.randrange(1, 5)
        return [
            controller("Deployment", name="web", replicas=many, selector=SELECTOR, template=grace),
            controller("ReplicaSet", name="rs", replicas=2, selector=SELECTOR, template=grace),
            controller("ReplicationController", name="rc", replicas=2, template=grace),
            controller(
                "StatefulSet",
                name="db",
                replicas=many,
                selector=SELECTOR,
                template=grace,
                podManagementPolicy=policy,
            ),
            controller("DaemonSet", name="logs", selector=SELECTOR, template=grace),
            controller(
                "Job",
                name="batch",
                completions=many,
                parallelism=2,
                backoffLimit=1000,
                completionMode=draw.choice(("Indexed", "NonIndexed")),
                template=grace,
            ),
        ]

    def expected_counts(self) -> dict[str, int]:
        """The number of pods of each controller."""
        counts = {f"{one['kind']}/{one['metadata']['name']}": one for one in self.controllers}
        counts_by_name = {name: one["spec"].get("replicas", 0) for name, one in counts.items()}
        job = counts["Job/batch"]["spec"]
        return {
            **counts_by_name,
            "DaemonSet/logs": len(self.there),
            "Job/batch": min(job["completions"], job["parallelism"]),
        }

    def events(self, names: list[str]) -> list[Content]:
        """``names``: pods that exist at the beginning."""
        draw, events, seconds = self._random, list[Content](), 5
        for _ in range(draw.randrange(3, 12)):
            seconds += draw.randrange(0, 40)
            verb = draw.choice(("evict", "delete", "drain", "uncordon", "node", "scale", "urgent"))
            event = self._event(verb, names)
            if event:
                events.append({"at": seconds, **event})
        nodes = [node(name) for name in NODES if name not in self.there]
        self.there = set(NODES)
        calm = {"at": seconds + CALM_SECONDS, "create": nodes}
        calm["uncordon"] = [{"name": name} for name in NODES]
        return [*events, calm]

    def _event(self, verb: str, names: list[str]) -> Content:
        draw = self._random
        if verb in ("evict", "delete") and names:
            name = names.pop(draw.randrange(len(names)))
            return {verb: [{"kind": "Pod", "name": name}]}
        if verb == "drain" and self.there:
            flags = {"ignoreDaemonsets": True, "force": draw.random() < 0.7}
            return {verb: [{"name": draw.choice(sorted(self.there)), **flags}]}
        if verb == "uncordon" and self.there:
            return {verb: [{"name": draw.choice(sorted(self.there))}]}
        if verb == "scale":
            one = draw.choice([c for c in self.controllers if "replicas" in c["spec"]])
            replicas = draw.randrange(0, 6)
            one["spec"]["replicas"] = replicas
            named = {"kind": one["kind"], "name": one["metadata"]["name"]}
            return {"scale": [{**named, "replicas": replicas}]}
        if verb == "urgent":
            name = f"urgent-{draw.randrange(10**6)}"
            large = pod(name, priorityClassName="high", cpu="3")
            return {"create": [large]}
        name = draw.choice(NODES)
        if name in self.there:
            self.there.discard(name)
            return {"delete": [{"kind": "Node", "name": name}]}
        self.there.add(name)
        return {"create": [node(name)]}


def play(seed: int, folder: Path) -> tuple[Disruptions, SimulationResult]:
    world = Disruptions(seed)
    objects = [
        *map(node, NODES),
        priority_class("high", 1000),
        *[{**one, "spec": dict(one["spec"])} for one in world.controllers],
    ]
    names = [one["metadata"]["name"] for one in load_objects(folder, *objects).initial]
    pods = [name for name in names if name.startswith(("rs-", "rc-", "db-", "batch-"))]
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"selector": SELECTOR, "maxUnavailable": 1},
    }
    delay = {"recreateAfter": f"{world.delay_seconds}s"}
    events = world.events(pods)
    feed = load_objects(folder, *objects, budget, scenario(*events, **delay))
    return world, run_by_default(feed)


def check(seed: int, folder: Path) -> None:
    """Raises AssertionError."""
    world, result = play(seed, folder)
    counts = Counter(one.controller for one in living(result).values() if one.controller)
    expected_counts = {name: count for name, count in world.expected_counts().items() if count}
    blocked = _ordered_set_waits(world, result)
    for name, count in expected_counts.items():
        if not (blocked and name == "StatefulSet/db"):
            assert counts[name] == count, (name, result.notes)
    assert set(counts) <= set(expected_counts)
    for name, one in living(result).items():
        assert one.node is not None or name in result.unschedulable


def _ordered_set_waits(world: Disruptions, result: SimulationResult) -> bool:
    """Whether a pending pod of the ordered StatefulSet blocks the next pods."""
    db = next(one for one in world.controllers if one["kind"] == "StatefulSet")
    if db["spec"]["podManagementPolicy"] == "Parallel":
        return False
    return any(name.startswith("default/db-") for name in result.unschedulable)
