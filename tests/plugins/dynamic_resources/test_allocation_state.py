"""The record that a search fills in."""

import pytest

from bayplan.plugins.dynamic_resources.requests import Alternative, alternatives_of
from tests.plugins.devices_kit import all_of, as_claim, as_class, claim, class_of, exactly


@pytest.mark.parametrize(("request_", "wants"), [(exactly(), False), (all_of(), True)])
def test_a_request_says_whether_it_wants_all_devices(
    request_: dict[str, object], wants: bool
) -> None:
    requests = as_claim(claim("c", request_)).spec.devices.requests
    assert requests is not None
    (alternatives,) = alternatives_of(requests[0])
    assert Alternative(alternatives, as_class(class_of()), alternatives.count).wants_all is wants
