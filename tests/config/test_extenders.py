"""What extenders are called, and asked for."""

from typing import Any

from bayplan.config.decoding import decode
from bayplan.config.extenders import ignored_resources, named_extenders, verb_paths
from bayplan.config.schema import Extender
from bayplan.ports import ExtenderVerb


def entry(url: str = "http://a/", **fields: Any) -> Extender:
    found, problems = decode({"urlPrefix": url, **fields}, Extender, "")
    assert found is not None, problems
    return found


def test_each_is_named_by_its_url_and_no_two_alike() -> None:
    entries = [entry("http://a/"), entry("http://b/"), entry("http://a/")]
    assert list(named_extenders(entries)) == ["http://a/", "http://b/", "http://a/ (extenders[2])"]


def test_verbs_that_are_written_are_asked_for() -> None:
    assert verb_paths(entry()) == {}
    assert verb_paths(entry(filterVerb="look", preemptVerb="evict")) == {
        ExtenderVerb.FILTER: "look",
        ExtenderVerb.PREEMPT: "evict",
    }


def test_only_some_managed_resources_are_none_of_the_schedulers_business() -> None:
    fpga = {"name": "example.com/fpga", "ignoredByScheduler": True}
    entries = [entry(managedResources=[fpga, {"name": "example.com/gpu"}]), entry()]
    assert ignored_resources(entries) == ("example.com/fpga",)
