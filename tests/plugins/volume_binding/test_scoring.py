"""How much of a node's storage a pod's claims would use, as a score."""

from typing import Any

from bayplan.framework.utilization_shape import broken_line
from bayplan.plugins.volume_binding.claims import PodClaims, pod_claims
from bayplan.plugins.volume_binding.finding import find_volumes
from bayplan.plugins.volume_binding.scoring import scores
from tests.plugins.volume_kit import (
    capacity,
    claim,
    cluster,
    csi_driver,
    storage_class,
    volume,
    with_claims,
    zoned,
)

EMPTIEST, FULLEST = broken_line([(0, 10), (100, 0)]), broken_line([(0, 0), (100, 10)])
MAKER = storage_class(provisioner="disk.test")
COUNTED = csi_driver(storageCapacity=True)


def score(
    *objects: Any, line: list[int] = FULLEST, claims: tuple[str, ...] = ("data",)
) -> list[int]:
    over = cluster(zoned(n1="a", n2="b"), *objects)
    told = pod_claims(over.volumes, with_claims("p", *claims))
    assert isinstance(told, PodClaims)
    nodes = over.lend().nodes
    return scores(find_volumes(over.volumes, told, nodes), line, len(nodes)).tolist()


def test_a_volume_scores_by_how_much_of_it_is_asked_for() -> None:
    volumes = [volume("x", "10Gi", zone="a"), volume("y", "20Gi", zone="b")]
    assert score(storage_class(), claim("data", "10Gi"), *volumes) == [100, 50]
    assert score(storage_class(), claim("data", "10Gi"), *volumes, line=EMPTIEST) == [0, 50]


def test_room_scores_by_how_much_of_it_is_asked_for() -> None:
    rooms = [capacity("x", "20Gi", "a"), capacity("y", "100Gi", "b")]
    assert score(MAKER, COUNTED, claim("data", "10Gi"), *rooms) == [50, 10]


def test_two_volumes_of_a_class_share_one_room() -> None:
    rooms = [capacity("x", "100Gi")]
    claims = [claim("one", "30Gi"), claim("two", "20Gi")]
    assert score(MAKER, COUNTED, *claims, *rooms, claims=("one", "two")) == [50, 50]


def test_volumes_of_a_class_are_added_up() -> None:
    volumes = [volume("x", "10Gi"), volume("y", "30Gi")]
    claims = [claim("one", "5Gi"), claim("two", "15Gi")]
    assert score(storage_class(), *claims, *volumes, claims=("one", "two")) == [50, 50]


def test_classes_count_alike_and_halves_are_rounded_up() -> None:
    volumes = [volume("x", "100Gi"), volume("y", "100Gi", class_name="other")]
    claims = [claim("one", "10Gi"), claim("two", "15Gi", class_name="other")]
    objects = [storage_class(), storage_class("other"), *claims, *volumes]
    assert score(*objects, claims=("one", "two")) == [13, 13]


def test_what_is_there_hides_what_would_be_made() -> None:
    objects = [MAKER, COUNTED, capacity("c", "1000Gi"), volume("x", "40Gi", zone="a")]
    claims = [claim("one", "10Gi"), claim("two", "90Gi")]
    assert score(*objects, *claims, claims=("one", "two")) == [25, 10]


def test_where_nobody_keeps_count_there_is_no_score() -> None:
    assert score(MAKER, claim("data")) == [0, 0]


def test_more_than_there_is_counts_as_full() -> None:
    rooms = [capacity("x", "1Gi", maximumVolumeSize="10Gi")]
    assert score(MAKER, COUNTED, claim("data", "10Gi"), *rooms) == [100, 100]
    rooms = [capacity("x", "0", maximumVolumeSize="10Gi")]
    assert score(MAKER, COUNTED, claim("data", "10Gi"), *rooms) == [100, 100]
