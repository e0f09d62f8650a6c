"""Members are equal if one ranking answers for them, whatever their labels.

Each scenario runs with the cache of results and without; journals must be equal to the last score.
"""

from collections.abc import Callable, Sequence

import pytest
from msgspec.structs import replace

from bayplan.api.objects import NODE, POD, SERVICE
from bayplan.engine.cycle import Cycle
from bayplan.engine.podgroups.arranged_pass import ArrangedPass
from bayplan.engine.podgroups.equal_members import equal_members
from bayplan.engine.podgroups.trial import EqualMembers, PodGroupTrial, TrialSetup
from bayplan.engine.ranked_domain import DomainFeasibility, RankedDomain
from bayplan.engine.ranking.ranked_nodes import RankedNodes
from bayplan.framework.types import QueuedPodInfo
from bayplan.rng import stream
from tests.engine.podgroups.reuse_kit import (
    GROUP_KIND,
    Content,
    GroupScheduler,
    group,
    member,
    rack_node,
)
from tests.seeded import depth

CHECK_PERIOD = "bayplan.engine.reuse.cache.CHECK_PERIOD"
#: A planted fault is searched for with so many seeds.
SEARCHED_SEEDS = 12


def _host(index: int, rack_count: int, cpu: int = 4) -> Content:
    """A node with the label of its name."""
    content = rack_node(index, rack_count, cpu)
    content["metadata"]["labels"]["kubernetes.io/hostname"] = f"n{index}"
    return content


def _shunning(number: int, where: str) -> Content:
    """A pod that shuns the members with this index, or likes them, in its rack or on its node."""
    selector = {"matchLabels": {"seen": str(number % 3)}}
    term = {
        "labelSelector": selector,
        "topologyKey": ("rack", "kubernetes.io/hostname")[number % 2],
    }
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    weighted = [{"weight": 50, "podAffinityTerm": term}]
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": weighted}
    affinity = {"podAntiAffinity": required} if number % 3 else {"podAffinity": preferred}
    return member(f"shuns-{number}", 10, nodeName=where, affinity=affinity)


def _run_labelled(groups: GroupScheduler, seed: int) -> None:
    """Members with an index in their labels come to racks of unequal nodes. Nobody reads one label;
    pods and services that come and go read the other one."""
    rng = stream(seed, "labels")
    rack_count, node_count = rng.choice((1, 2, 4)), 16
    shunning: list[Content] = []
    services: list[Content] = []
    for index in range(node_count):
        groups.add(NODE, _host(index, rack_count, rng.choice((2, 4, 4))))
    for number in range(14):
        event = rng.random()
        if event < 0.25:
            shunning.append(_shunning(number, f"n{rng.randrange(node_count)}"))
            groups.add(POD, shunning[-1])
        elif event < 0.4 and shunning:
            groups.delete(POD, shunning.pop())
        elif event < 0.55:
            metadata = {"name": f"s{number}", "namespace": "default"}
            services.append({"metadata": metadata, "spec": {"selector": {"seen": "1"}}})
            groups.add(SERVICE, services[-1])
        elif event < 0.7 and services:
            groups.delete(SERVICE, services.pop())
        keys = rng.choice((("unseen",), ("unseen",), ("unseen", "seen"), ("seen",), ()))
        topology = rng.choice(("rack", "rack", ""))
        count, cpu = rng.choice((2, 4, 12)), rng.choice((0, 250, 500, 500, 900))
        groups.add_group(f"g{number}", count, cpu, topology=topology, label_keys=keys)
        groups.schedule()


def _differs(seed: int) -> bool:
    """Whether the cache changes a decision or a record."""
    cached, evaluated = GroupScheduler(is_cached=True), GroupScheduler(is_cached=False)
    for groups in (cached, evaluated):
        _run_labelled(groups, seed)
    assert evaluated.nodes_of, "no group was placed"
    are_equal = cached.nodes_of == evaluated.nodes_of
    return not are_equal or cached.sink.digest != evaluated.sink.digest


@pytest.mark.parametrize("seed", range(depth(4, 12)))
def test_labels_of_members_count_where_something_reads_them(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if seed % 2:
        monkeypatch.setattr(CHECK_PERIOD, 11)
    assert not _differs(seed)


# ---- what keeps members from being equal ----------------------------------------------------


def _cycles_of(groups: GroupScheduler, patch: pytest.MonkeyPatch) -> list[str]:
    """The members that get a cycle in passes from now on."""
    tried: list[str] = []
    try_one = PodGroupTrial._try

    def recorded(self: PodGroupTrial, queued: QueuedPodInfo) -> None:
        tried.append(queued.pod.name)
        try_one(self, queued)

    patch.setattr(PodGroupTrial, "_try", recorded)
    groups.schedule()
    return tried


def _prepared() -> GroupScheduler:
    """Half of the nodes have taken such a member before; the others are equal to them."""
    groups = GroupScheduler(is_cached=True)
    for index in range(8):
        groups.add(NODE, _host(index, 2))
    groups.add_group("before", 4, topology="")
    groups.schedule()
    return groups


def test_equal_members_need_one_cycle(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = _prepared()
    groups.add_group("a", 4, topology="")
    assert _cycles_of(groups, monkeypatch) == ["a-0"]


def test_each_template_needs_a_cycle(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = _prepared()
    groups.add_group("a", 3, topology="", label_keys=("index",))
    assert _cycles_of(groups, monkeypatch) == ["a-0", "a-1", "a-2"]


def test_no_arrangement_is_searched_for_members_that_differ_in_labels_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arranged: list[ArrangedPass] = []

    def run(self: ArrangedPass, _: object) -> None:
        arranged.append(self)

    monkeypatch.setattr(ArrangedPass, "run", run)
    for topology in ("", "rack"):
        groups = _prepared()
        groups.add_group("a", 70, topology=topology, label_keys=("index",))
        groups.schedule()
        assert len(groups.nodes_of) == 4, "the group fits"
        assert not arranged
        groups.add(POD, _shunning(1, "n1"))
        groups.add_group("b", 70, topology=topology, label_keys=("seen",))
        groups.schedule()
        assert arranged, "a label that another pod reads makes the members unequal"
        arranged.clear()


def test_members_of_another_owner_need_a_cycle(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = _prepared()
    groups.add(GROUP_KIND, group("a", 4, ""))
    for index, owner in enumerate(("x", "x", "y", "y")):
        content = member(f"a-{index}", 500, "a")
        owners = [{"apiVersion": "batch/v1", "kind": "Job", "name": owner, "uid": owner}]
        content["metadata"]["ownerReferences"] = owners
        groups.add(POD, content)
    assert _cycles_of(groups, monkeypatch) == ["a-0", "a-2"]


def test_each_member_needs_a_cycle_if_one_is_nominated(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = _prepared()
    groups.add(GROUP_KIND, group("a", 3, ""))
    for index in range(3):
        content = member(f"a-{index}", 500, "a")
        if index == 1:
            content["status"] = {"nominatedNodeName": "n7"}
        groups.add(POD, content)
    assert _cycles_of(groups, monkeypatch) == ["a-0", "a-1", "a-2"]


# ---- planted faults -------------------------------------------------------------------------


Plant = Callable[[pytest.MonkeyPatch], None]


def labels_are_never_read(patch: pytest.MonkeyPatch) -> None:
    """The ranking of one member answers for members with all other labels."""

    def any_example(self: PodGroupTrial, _: object) -> Cycle | None:
        return next(iter(self._examples.values()), None)

    patch.setattr(PodGroupTrial, "_example_of", any_example)


def a_label_is_read_though_nobody_reads_it(patch: pytest.MonkeyPatch) -> None:
    """The first member decides for all of them in a comparison of domains."""

    def of_first(setup: TrialSetup, members: Sequence[QueuedPodInfo]) -> EqualMembers | None:
        equal = equal_members(setup, members[:1])
        if equal is None:
            return None
        (cycle,) = equal.cycles.values()
        return replace(equal, cycles={one.pod.shape: cycle for one in members})

    patch.setattr("bayplan.engine.podgroups.domains.equal_members", of_first)


def a_domain_does_not_see_its_members(patch: pytest.MonkeyPatch) -> None:
    """Members of a pass in a domain choose as if those before were not placed."""
    patch.setattr(RankedDomain, "move", lambda domain, *_: domain.feasible_count)


def a_ranking_does_not_see_its_members(patch: pytest.MonkeyPatch) -> None:
    """Members of a pass over all nodes choose as if those before were not placed."""

    def deaf(ranking: RankedNodes, *_: object) -> int:
        ranking.generation += 1
        return ranking.feasible_count

    patch.setattr(RankedNodes, "move", deaf)


def a_full_node_stays_feasible(patch: pytest.MonkeyPatch) -> None:
    """A node that is full counts among the feasible nodes of its domain."""
    patch.setattr(DomainFeasibility, "reject", lambda *_: None)


def scores_do_not_count_among_domains(patch: pytest.MonkeyPatch) -> None:
    """The first domain with enough places counts as the best one."""
    patch.setattr(RankedDomain, "best_total", lambda *_: 0)


FAULTS: tuple[Plant, ...] = (
    labels_are_never_read,
    a_label_is_read_though_nobody_reads_it,
    a_domain_does_not_see_its_members,
    a_ranking_does_not_see_its_members,
    a_full_node_stays_feasible,
    scores_do_not_count_among_domains,
)


@pytest.mark.parametrize("plant", FAULTS, ids=lambda plant: plant.__name__)
def test_a_planted_fault_is_detected(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert any(_is_detected(seed) for seed in range(SEARCHED_SEEDS))


def _is_detected(seed: int) -> bool:
    try:
        return _differs(seed)
    except (AssertionError, IndexError, KeyError):
        # The fault may also cause an impossible state.
        return True
