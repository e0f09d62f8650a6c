"""The objects and pages of the benchmark of `bayplan why` on a live cluster."""

import gzip

from benchmarks.bench_why import POD, beginning, listed_paths, stored_objects

PODS = "/api/v1/pods?fieldSelector=status.phase%21%3DFailed&limit=500"


def test_each_object_has_a_key_and_a_uid_of_its_own_and_one_pod_waits() -> None:
    objects = list(stored_objects(4, 20))
    assert len({key for key, _ in objects}) == len(objects)
    assert len({each["metadata"]["uid"] + each["kind"] for _, each in objects}) == len(objects)
    pods = [each for _, each in objects if each["kind"] == "Pod"]
    [waiting] = [each for each in pods if "nodeName" not in each["spec"]]
    assert f"default/{waiting['metadata']['name']}" == POD
    assert len(pods) == 21


def test_each_list_is_fetched_once_from_its_first_page() -> None:
    uris = ["/api/v1/nodes?limit=500", PODS, f"{PODS}&continue=abc", PODS]
    paths = listed_paths([{"requestURI": uri} for uri in uris])
    assert paths == ["/api/v1/nodes?limit=500", PODS]


def test_the_beginning_of_a_compressed_page_is_read_without_its_end() -> None:
    page = b'{"metadata":{"continue":"abc"},"items":[' + b"x" * 100_000
    assert page.startswith(beginning(gzip.compress(page)))
    assert len(beginning(gzip.compress(page))) < 5000
