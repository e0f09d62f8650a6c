"""Versions parse strictly and compare in the order of semver.org."""

import pytest

from bayplan.api.semver import Semver, SemverError

#: The order that semver.org gives as its example, with versions before and after.
ASCENDING = (
    *("0.9.10", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta"),
    *("1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "1.0.1", "1.2.0", "1.10.0"),
    "2.0.0",
)


def test_versions_are_ordered_as_semver_org_orders_them() -> None:
    versions = [Semver.parse(text) for text in ASCENDING]
    for index, one in enumerate(versions):
        for other_index, other in enumerate(versions):
            assert one.compare(other) == (index > other_index) - (index < other_index)


@pytest.mark.parametrize("text", ["", "1", "1.2", "v1.2.3", "01.2.3", "1.2.3-", "1.2.3-01", "x"])
def test_an_invalid_version_is_refused(text: str) -> None:
    with pytest.raises(SemverError, match="wanted a version such as"):
        Semver.parse(text)


@pytest.mark.parametrize(
    ("text", "version"),
    [("v1.2", "1.2.0"), ("1", "1.0.0"), ("01.02.03", "1.2.3"), ("v1-a", "1.0.0-a")],
)
def test_a_short_version_is_completed_on_request(text: str, version: str) -> None:
    assert str(Semver.parse(text, normalize=True)) == version
