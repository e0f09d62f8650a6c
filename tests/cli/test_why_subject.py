"""The subject that the words of `bayplan why` name."""

import pytest

from bayplan.cli.why_subject import is_kind_and_name, subject_of_words


@pytest.mark.parametrize(
    ("words", "kind", "name"),
    [
        (("web-0",), "", "default/web-0"),
        (("shop/web-0",), "", "shop/web-0"),
        (("po", "web-0"), "", "default/web-0"),
        (("deploy/web",), "Deployment", "default/web"),
        (("sts", "shop/db"), "StatefulSet", "shop/db"),
        (("podgroup", "train"), "podgroup", "default/train"),
    ],
)
def test_words_name_a_pod_a_group_or_a_workload(
    words: tuple[str, ...], kind: str, name: str
) -> None:
    subject = subject_of_words(words, None)
    assert (subject.kind, subject.name) == (kind, name)
    assert subject.is_workload is (kind in ("Deployment", "StatefulSet"))


def test_a_namespace_that_is_also_a_kind_needs_two_words() -> None:
    assert is_kind_and_name("job/x")
    assert not is_kind_and_name("shop/x")


def test_two_namespaces_are_a_conflict() -> None:
    assert subject_of_words(("shop/web-0",), "default").conflict
    assert not subject_of_words(("shop/web-0",), "shop").conflict
    with pytest.raises(SystemExit):
        subject_of_words(("job", "shop/web-0"), "default")
