"""What `why` says about the levels of a group's topology, and the fixes that it offers."""

from collections.abc import Sequence
from typing import Any

import pytest

from bayplan.explain.explanation import Explanation
from bayplan.explain.workload import explain_workload
from tests.kit.manifests import Content, container, node, pod, pod_group
from tests.whatif.clusters import cluster_of, model_of

REQUIRED = "bayplan.dev/required-topology"
SLICES = "bayplan.dev/topology-slices"
GROUP_LABEL = "scheduling.x-k8s.io/pod-group"


def racks(*cpus: tuple[int, ...]) -> list[Content]:
    """Racks r0, r1 … with the cpus of their nodes."""
    return [
        node(f"r{rack}-{index}", cpu=str(cpu), labels={"rack": f"r{rack}"})
        for rack, of_nodes in enumerate(cpus)
        for index, cpu in enumerate(of_nodes)
    ]


def group(name: str, annotations: dict[str, str], *cpus: str) -> list[Content]:
    """A group and its members, which wait."""
    content = pod_group(name, len(cpus))
    content["metadata"]["annotations"] = annotations
    labels = {GROUP_LABEL: name}
    return [
        content,
        *(pod(f"{name}-{index}", cpu=cpu, labels=labels) for index, cpu in enumerate(cpus)),
    ]


def placed(name: str, on: str, cpu: str, **fields: Any) -> Content:
    return pod(name, cpu=cpu, nodeName=on, **fields)


def answer(*objects: Content) -> Explanation:
    return explain_workload(model_of(cluster_of(*objects)), "podgroup", "default/train")


def lines(explanation: Explanation, first: str) -> list[str]:
    """The lines from one that begins so, to the next blank one."""
    text = [line.strip() for line in str(explanation).splitlines()]
    begin = next(place for place, line in enumerate(text) if line.startswith(first))
    return text[begin : text.index("", begin)]


def test_the_nearest_rack_what_it_lacks_and_the_pods_in_the_way_are_shown() -> None:
    explanation = answer(
        *racks((4, 4), (4, 2)),
        placed("small", "r0-0", "3"),
        placed("large", "r1-0", "4"),
        *group("train", {REQUIRED: "rack"}, "2", "2", "2", "2"),
    )
    assert lines(explanation, "level") == [
        "level rack (required): 0 of 2 domains can take 4 members",
        "the nearest is r0: it has room for 2 of 4 members; it lacks 3 cpu",
        "1 pod in the way: default/small",
    ]


def test_a_preferred_rack_is_offered_after_it_was_tried() -> None:
    explanation = answer(*racks((4,), (4,)), *group("train", {REQUIRED: "rack"}, "2", "2", "2"))
    text = str(explanation)
    assert "prefer one rack for group default/train instead of requiring it" in text
    assert (
        "kubectl patch podgroup.scheduling.x-k8s.io/train -n default --type=json -p "
        """'[{"op":"remove","path":"/metadata/annotations/bayplan.dev~1required-topology"},"""
        """{"op":"add","path":"/metadata/annotations/bayplan.dev~1preferred-topology","""
        """"value":"rack"}]'"""
    ) in text


def test_the_largest_smaller_slice_that_fits_is_offered() -> None:
    explanation = answer(*racks((3, 3), (2,)), *group("train", {SLICES: "rack=4"}, *["1"] * 8))
    assert lines(explanation, "level") == [
        "level rack (slices): 1 of 2 slices of 4 fit in 2 domains",
        "the nearest is r0: it has room for 2 of 4 members; it lacks 2 cpu",
    ]
    texts = [step for fix in explanation.fixes for step in fix.steps]
    assert "divide group default/train by rack into slices of 2, not 4" in texts
    assert not [text for text in texts if "slices of 1" in text]


def test_slices_that_would_not_help_are_not_offered() -> None:
    explanation = answer(*racks((3,), (1,)), *group("train", {SLICES: "rack=4"}, *["1"] * 8))
    assert not [fix for fix in explanation.fixes if "slices" in str(fix.steps)]


#: A pod of a group of the same name in another API group.
OF_ANOTHER_API_GROUP = (
    node("r2-0", cpu="1", labels={"rack": "r2"}),
    placed("namesake", "r2-0", "1", labels={"pod-group.scheduling.ming.io": "other"}),
)


@pytest.mark.parametrize("further", [(), OF_ANOTHER_API_GROUP], ids=["alone", "with a namesake"])
def test_a_group_that_fits_elsewhere_is_offered_to_move(further: Sequence[Content]) -> None:
    members = [
        placed(
            f"other-{index}",
            f"r0-{index}",
            "2",
            labels={GROUP_LABEL: "other", "app": "other"},
            ownerReferences=[
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": "other",
                    "uid": "uid-other",
                    "controller": True,
                }
            ],
        )
        for index in range(2)
    ]
    template = {
        "metadata": {"labels": {GROUP_LABEL: "other", "app": "other"}},
        "spec": {"containers": [container("2")]},
    }
    replica_set = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "other", "namespace": "default", "uid": "uid-other"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "other"}},
            "template": template,
        },
    }
    explanation = answer(
        *racks((4, 4), (2, 2)),
        *further,
        pod_group("other", 2),
        replica_set,
        *members,
        *group("train", {REQUIRED: "rack"}, "4", "4"),
    )
    assert lines(explanation, "level")[-1] == "of groups: default/other"
    moves = [fix for fix in explanation.fixes if "move group default/other" in str(fix.steps)]
    assert [fix.steps for fix in moves] == [
        ("move group default/other: stop its 2 pods, and start them again",)
    ]
    assert moves[0].commands == ("kubectl scale replicaset.apps/other -n default --replicas=0",)
    back = "kubectl scale replicaset.apps/other -n default --replicas=2"
    assert moves[0].notes == (f"its pods then fit on r1-0, r1-1; afterwards: {back}",)
