"""Extenders that are Python classes: their calls and their answers."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from bayplan import InProcessExtender, PodInfo
from bayplan.config import ConfigError
from bayplan.plugins.registry import Registry, default_registry
from bayplan.ports import BindPort, ExtenderVerb, NamedVictims, Victims
from bayplan.sim.output.result import SimulationResult
from bayplan.sim.simulation import Simulation
from tests.kit.manifests import container, node, pod
from tests.sim.runs import profile, workload


def run(*extenders: type[InProcessExtender], **pod_fields: Any) -> SimulationResult:
    """Pod a beside nodes n1, n2 and n3."""
    registry = default_registry()
    for each in extenders:
        registry.add_extender(each)
    feed = workload(*(node(f"n{number}") for number in (1, 2, 3)), pod("a", **pod_fields))
    return Simulation(feed, profile(), registry).run()


class Filters(InProcessExtender):
    name = "Filters"

    def filter(self, pod: PodInfo, node_names: Sequence[str]) -> Mapping[str, str]:
        return {name: "no licence left" for name in node_names if name != "n2"}


class Prefers(InProcessExtender):
    name = "Prefers"
    weight = 100

    def prioritize(self, pod: PodInfo, node_names: Sequence[str]) -> Mapping[str, int]:
        return {"n3": 10}


class Binds(InProcessExtender):
    name = "Binds"

    def __init__(self) -> None:
        self.bound_count = 0

    async def bind(self, pod: PodInfo, node_name: str, port: BindPort) -> None:
        self.bound_count += 1
        await port.sleep(7)
        await port.bind(pod, node_name)


class RejectsAll(Filters):
    name = "RejectsAll"

    def filter(self, pod: PodInfo, node_names: Sequence[str]) -> Mapping[str, str]:
        return dict.fromkeys(node_names, "no licence left")


class Fails(InProcessExtender):
    name = "Fails"

    def filter(self, pod: PodInfo, node_names: Sequence[str]) -> Mapping[str, str]:
        raise SystemExit(7)


class MayFail(Fails):
    name = "MayFail"
    ignorable = True


class Nonsense(InProcessExtender):
    name = "Nonsense"

    def filter(self, pod: PodInfo, node_names: Sequence[str]) -> Any:
        return list(node_names)


class OfGpus(RejectsAll):
    name = "OfGpus"
    managed_resources = ("example.com/gpu",)


class LimitsCandidates(InProcessExtender):
    name = "LimitsCandidates"

    def preempt(self, pod: PodInfo, victims: Mapping[str, Victims]) -> Mapping[str, NamedVictims]:
        return {
            name: NamedVictims(tuple(each.uid for each in victims_on_node.pods))
            for name, victims_on_node in victims.items()
            if name != "n1"
        }


def test_an_extender_filters() -> None:
    assert run(Filters).placements == {"default/a": "n2"}


def test_the_rejections_of_an_extender_are_reasons_of_the_pod() -> None:
    message = run(RejectsAll).unschedulable["default/a"]
    assert message.startswith("0/3 nodes are available: 3 no licence left.")


def test_an_extender_scores() -> None:
    assert run(Prefers).placements == {"default/a": "n3"}


def test_an_extender_binds_through_the_port() -> None:
    assert run(Binds).pods["default/a"].bound_at == 7.0


def test_an_extender_is_called_for_pods_with_its_managed_resources() -> None:
    assert "default/a" in run(OfGpus).placements
    gpu = container("1")
    gpu["resources"]["limits"] = {"example.com/gpu": "1"}
    gpu["resources"]["requests"]["example.com/gpu"] = "1"
    assert run(OfGpus, containers=[gpu]).placements == {}


def test_an_exception_of_an_extender_fails_the_attempt_and_names_the_extender() -> None:
    result = run(Fails)
    assert result.unschedulable["default/a"].startswith("extender Fails: SystemExit: 7")


def test_an_exception_of_an_ignorable_extender_is_ignored() -> None:
    assert "default/a" in run(MayFail).placements


def test_an_answer_of_a_wrong_form_is_an_error_of_the_extender() -> None:
    message = run(Nonsense).unschedulable["default/a"]
    assert message.startswith(
        "extender Nonsense: WrongAnswer: returned ['n1', 'n2', 'n3']; wanted a"
    )


def test_the_verbs_of_an_extender_are_its_methods() -> None:
    assert LimitsCandidates.verbs() == {ExtenderVerb.PREEMPT}
    assert Filters.verbs() == RejectsAll.verbs() == {ExtenderVerb.FILTER}


def test_an_extender_can_restrict_the_candidates_of_preemption() -> None:
    registry = default_registry()
    registry.add_extender(LimitsCandidates)
    full = [container("4")]
    low = [pod(f"low-{n}", containers=full, nodeName=f"n{n}", priority=0) for n in (1, 2)]
    urgent = pod("urgent", containers=full, priority=100)
    nodes = [node(f"n{n}", cpu="4") for n in (1, 2)]
    result = Simulation(workload(*nodes, *low, urgent), profile(), registry).run()
    assert result.placements == {"default/urgent": "n2"}


def test_an_extender_in_a_plugin_file_is_called(tmp_path: Path) -> None:
    file = tmp_path / "licences.py"
    text = "from bayplan import InProcessExtender\n"
    text += "class Licences(InProcessExtender):\n"
    text += "    name = 'Licences'\n"
    text += "    def filter(self, pod, node_names):\n"
    text += "        return {}\n"
    file.write_text(text, encoding="utf-8")
    registry = Registry()
    assert registry.load_file(file) == []
    assert [each.name for each in registry.extenders] == ["Licences"]


class NoVerb(InProcessExtender):
    name = "NoVerb"


class NoName(Filters):
    name = ""


class NoWeight(Filters):
    name = "NoWeight"
    weight = 0


@pytest.mark.parametrize(
    ("extender", "message"),
    [(NoVerb, "defines none of"), (NoName, "name is ''"), (NoWeight, "weight is 0")],
)
def test_a_class_without_a_verb_or_name_is_refused(extender: type[Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Registry().add_extender(extender)


def test_two_extenders_with_the_same_name_are_refused() -> None:
    registry = Registry()
    registry.add_extender(Filters)
    with pytest.raises(ConfigError, match="there is an extender Filters already"):
        registry.add_extender(Filters)
