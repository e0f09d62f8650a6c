"""Names of versions, and the behaviour that follows from them."""

import pytest
from msgspec import structs

from bayplan.config.behaviour import (
    NEWEST_BEHAVIOUR,
    Behaviour,
    behaviour_of,
    changes_between,
)
from bayplan.config.behaviour_table import CHANGES
from bayplan.config.kubernetes_versions import (
    NEWEST,
    KubernetesVersion,
    nearest_version,
    version_of_release,
)

V1_34, V1_35, V1_36 = (
    KubernetesVersion.V1_34,
    KubernetesVersion.V1_35,
    KubernetesVersion.V1_36,
)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("1.35", V1_35),
        ("1.36.3", V1_36),
        ("v1.34.4-gke.1000", V1_34),
        ("v1.35.4+k3s1", V1_35),
        ("1.37", NEWEST),
        ("1.37.0", KubernetesVersion.V1_37_0),
        ("1.37.1", NEWEST),
        ("1.37.2", NEWEST),
        ("1.38-preview", KubernetesVersion.V1_38),
        ("1.33", None),
        ("1.38.0", None),
        ("newest", None),
        ("", None),
    ],
)
def test_a_release_has_the_version_of_its_minor(
    text: str, version: KubernetesVersion | None
) -> None:
    assert version_of_release(text) is version


def test_the_newest_part_of_a_cluster_decides() -> None:
    assert nearest_version(["v1.34.1", "v1.36.3", "v1.35.0"]) == (V1_36, "v1.36.3")
    assert nearest_version(["v1.29.1"]) == (V1_34, "v1.29.1")
    assert nearest_version(["v1.41.0", "?"]) == (NEWEST, "v1.41.0")
    assert nearest_version(["?", ""]) is None


def test_every_field_of_the_behaviour_has_one_change() -> None:
    changed = [change.field for change in CHANGES]
    assert sorted(changed) == sorted(Behaviour.__struct_fields__)
    for change in CHANGES:
        assert change.before != getattr(Behaviour(), change.field), change.field
        assert change.text.endswith(".") and change.source and change.part
        assert change.since.is_recorded or not change.is_recorded, change.field


def test_a_version_lacks_the_changes_that_came_later() -> None:
    old, new = behaviour_of(V1_35), behaviour_of(V1_36)
    assert not old.scores_change_of_balance and new.scores_change_of_balance
    assert old.devices_have_score and not behaviour_of(V1_34).devices_have_score
    changed = {change.field: getattr(new, change.field) for change in changes_between(V1_35, V1_36)}
    assert structs.replace(old, **changed) == new


def test_the_last_two_patches_of_1_37_differ_in_two_answers() -> None:
    changes = changes_between(KubernetesVersion.V1_37_0, NEWEST)
    fields = {change.field for change in changes}
    assert fields == {"rule_without_selector_matches", "device_limit_names_request"}
    assert behaviour_of(NEWEST) is NEWEST_BEHAVIOUR
