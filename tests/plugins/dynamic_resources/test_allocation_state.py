"""The state that a search fills in."""

import pytest

from bayplan.plugins.dynamic_resources.requests import Alternative, alternatives_of
from tests.plugins.devices_kit import all_of, as_claim, as_class, claim, class_of, exactly


@pytest.mark.parametrize(("request_", "is_all"), [(exactly(), False), (all_of(), True)])
def test_a_request_has_a_flag_for_all_devices(request_: dict[str, object], is_all: bool) -> None:
    requests = as_claim(claim("c", request_)).spec.devices.requests
    assert requests is not None
    (alternatives,) = alternatives_of(requests[0])
    assert Alternative(alternatives, as_class(class_of()), alternatives.count).wants_all is is_all
