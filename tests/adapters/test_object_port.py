"""The verbs that take any object, over the server in memory."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from bayplan.adapters.embedded import EmbeddedCluster
from bayplan.adapters.object_names import object_key
from bayplan.api.device_objects import RESOURCE_CLAIM, ResourceClaim
from bayplan.clock import ManualClock
from bayplan.ports import ConflictError, NotFoundError

T = TypeVar("T")
KEY = object_key(RESOURCE_CLAIM, "default", "c")


def cluster() -> EmbeddedCluster:
    found = EmbeddedCluster(ManualClock())
    meta = {"name": "c", "namespace": "default"}
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    api_version, _, kind = RESOURCE_CLAIM.partition(" ")
    found.create(
        {
            "apiVersion": api_version,
            "kind": kind,
            "metadata": meta,
            "spec": {"devices": {"requests": [request]}},
        }
    )
    return found


def done(call: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(call)


def test_a_write_of_the_status_changes_nothing_else() -> None:
    found = cluster()
    patch = {"metadata": {"labels": {"a": "b"}}, "status": {"reservedFor": [{"uid": "u"}]}}
    written = done(found.patch(*KEY, patch, "status"))
    assert isinstance(written, ResourceClaim)
    assert written.is_reserved_for("u")
    assert written.metadata.labels is None
    assert done(found.read(*KEY)) == written


def test_a_patch_that_means_an_older_version_is_refused() -> None:
    found = cluster()
    version = done(found.read(*KEY)).metadata.resource_version
    meant = {"metadata": {"resourceVersion": version}}
    done(found.patch(*KEY, {**meant, "status": {"reservedFor": [{"uid": "u"}]}}, "status"))
    with pytest.raises(ConflictError):
        done(found.patch(*KEY, {**meant, "status": {"reservedFor": []}}, "status"))


def test_an_object_is_created_with_a_name_of_the_servers() -> None:
    found = cluster()
    content = {"metadata": {"generateName": "p-", "namespace": "default"}, "spec": {"devices": {}}}
    created = done(found.create_object(RESOURCE_CLAIM, content))
    assert created.metadata.name.startswith("p-")
    assert done(found.read(RESOURCE_CLAIM, "default", created.metadata.name)) == created


def test_only_the_object_of_that_uid_is_deleted() -> None:
    found = cluster()
    with pytest.raises(ConflictError):
        done(found.delete_object(*KEY, "another"))
    done(found.delete_object(*KEY, done(found.read(*KEY)).metadata.uid or ""))
    with pytest.raises(NotFoundError):
        done(found.read(*KEY))
