"""Admission reviews: what is read, and what is refused."""

import json
from typing import Any

import pytest

from bayplan.webhook.reviews import UnreadableReviewError, answer_of, read_review


def body(**request: Any) -> bytes:
    kind = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    return json.dumps({**kind, "request": {"uid": "u", **request}}).encode()


def test_the_kind_of_an_object_has_its_group() -> None:
    kind = {"group": "apps", "version": "v1", "kind": "Deployment"}
    review = read_review(body(kind=kind, operation="CREATE", object={"spec": {}}))
    assert (str(review.kind), review.is_creation) == ("apps/v1 Deployment", True)
    assert review.content() == {"spec": {}}
    assert str(read_review(body(kind={"version": "v1", "kind": "Pod"})).kind) == "v1 Pod"


def test_an_update_and_a_subresource_are_no_creations() -> None:
    assert not read_review(body(operation="UPDATE")).is_creation
    assert not read_review(body(operation="CREATE", subResource="binding")).is_creation


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{}", b'{"request": {}}', b'{"request": {"uid": "u"}}', b"[" * 100_000],
)
def test_what_is_no_review_is_refused(content: bytes) -> None:
    with pytest.raises(UnreadableReviewError):
        read_review(content)


def test_an_object_that_is_no_object_is_refused() -> None:
    with pytest.raises(UnreadableReviewError):
        read_review(body(object=[1])).content()


def test_every_answer_allows() -> None:
    assert answer_of("u")["response"] == {"uid": "u", "allowed": True}
    warned = answer_of("u", "no node")["response"]
    assert warned == {"uid": "u", "allowed": True, "warnings": ["no node"]}
