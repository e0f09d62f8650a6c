"""The extenders of a configuration."""

from typing import Any

import pytest

from bayplan.api.objects import POD, Pod
from bayplan.api.objects import decode as decode_object
from bayplan.config.decoding import decode
from bayplan.config.schema import Extender
from bayplan.engine.extenders.results import ConfiguredExtender, configured_extenders
from bayplan.ports import ExtenderVerb
from bayplan.state.pods import pod_info
from bayplan.testing import pod


def configured(**fields: Any) -> ConfiguredExtender:
    result, problems = decode({"urlPrefix": "http://a/", **fields}, Extender, "")
    assert result is not None, problems
    (extender,) = configured_extenders([result])
    return extender


def test_an_extender_is_named_by_its_url_and_has_the_configured_verbs() -> None:
    result = configured(filterVerb="f", bindVerb="b", weight=3, ignorable=True)
    assert (result.name, result.weight, result.ignorable) == ("http://a/", 3, True)
    assert result.verbs == {ExtenderVerb.FILTER, ExtenderVerb.BIND}


FPGA = {"example.com/fpga": "1"}


def with_resources(where: str, **resources: Any) -> Any:
    container = {"name": "c", "image": "app", "resources": resources}
    spec: dict[str, Any] = {"containers": [], "initContainers": [], where: [container]}
    pod = decode_object(POD, {"metadata": {"name": "p", "uid": "u"}, "spec": spec})
    assert isinstance(pod, Pod)
    return pod_info(pod)


@pytest.mark.parametrize(
    ("pod_info", "is_interested"),
    [
        (pod("p", cpu=1), False),
        (with_resources("containers", requests=FPGA), True),
        (with_resources("containers", limits=FPGA), True),
        (with_resources("initContainers", requests=FPGA), True),
        (with_resources("containers", requests={"example.com/gpu": "1"}), False),
        (with_resources("containers", requests={"example.com/fpga": "0"}), True),
    ],
    ids=["none", "requests", "limits", "init container", "another resource", "no resource"],
)
def test_an_extender_is_interested_in_pods_that_request_its_managed_resources(
    pod_info: Any, is_interested: bool
) -> None:
    fpga = configured(filterVerb="f", managedResources=[{"name": "example.com/fpga"}])
    assert fpga.is_interested(pod_info) is is_interested
    assert configured(filterVerb="f").is_interested(pod_info)


def test_extenders_with_different_managed_resources_are_interested_in_different_pods() -> None:
    requesting = with_resources("containers", requests=FPGA)
    assert configured(managedResources=[{"name": "example.com/fpga"}]).is_interested(requesting)
    assert not configured(managedResources=[{"name": "example.com/gpu"}]).is_interested(requesting)
