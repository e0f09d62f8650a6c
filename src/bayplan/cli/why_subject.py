"""What `bayplan why` is about: a pod, a pod group, or a workload."""

from dataclasses import dataclass
from typing import final

from bayplan.cli.streams import fail
from bayplan.objects.keys import DEFAULT_NAMESPACE
from bayplan.objects.workloads import WORKLOAD_SPELLINGS, spelling_without_group
from bayplan.problems import nearest, suggestion

_PODS = ("pod", "pods", "po")
_GROUPS = ("podgroup", "podgroups", "pg")
_KINDS = (*WORKLOAD_SPELLINGS, *_PODS, *_GROUPS)
_EXPECTED = (
    "wanted NAMESPACE/NAME of a pod, podgroup NAMESPACE/NAME, or a workload, as deployment/NAME "
    "with --namespace"
)


@final
@dataclass(frozen=True, slots=True)
class WhySubject:
    """What the question is about. ``kind``: "" for a pod, "podgroup", or a workload's kind."""

    kind: str
    #: "namespace/name"
    name: str
    #: Why the words are wrong, unless the first part of the name is a kind of the cluster that is
    #: no known workload: "rollout/web" with --namespace. "": the words are right.
    conflict: str = ""

    @property
    def namespace(self) -> str:
        return self.name.partition("/")[0]

    @property
    def is_workload(self) -> bool:
        return self.kind in WORKLOAD_SPELLINGS.values()

    @property
    def controller(self) -> str:
        """As `PodResult.controller` has it."""
        return f"{self.kind}/{self.name.partition('/')[2]}"


def is_kind(word: str) -> bool:
    """Whether a word is a kind."""
    return spelling_without_group(word) in _KINDS


def meant_kind(name: str) -> str:
    """Of "deployent/web": that the kind deployment may be meant. "": no kind is similar."""
    word, slash, own = name.partition("/")
    meant = nearest(word, _KINDS) if slash and not is_kind(word) else None
    return "" if meant is None else f'did you mean "{meant}/{own}"?'


def is_kind_and_name(word: str) -> bool:
    """Whether a word is a kind and a name, as deployment/web."""
    kind, slash, _ = word.partition("/")
    return bool(slash) and is_kind(kind)


def subject_of_words(words: tuple[str, ...], namespace: str | None) -> WhySubject:
    """What the words name: "web-0", "shop/web-0", "pod web-0", "deployment/web", "job shop/x"."""
    *kinds, name = words
    if not kinds and is_kind_and_name(name):
        kind, _, name = name.partition("/")
        kinds = [kind]
    if len(kinds) > 1 or name.count("/") > 1 or name.startswith("/") or name.endswith("/"):
        fail(f"found {' '.join(words)}, {_EXPECTED}")
    if "/" in name and namespace is not None and not name.startswith(f"{namespace}/"):
        conflict = f"found {name} and --namespace {namespace}, wanted one namespace"
        if kinds:
            fail(conflict)
        return WhySubject("", name, conflict)
    full_name = name if "/" in name else f"{namespace or DEFAULT_NAMESPACE}/{name}"
    word = spelling_without_group(kinds[0]) if kinds else ""
    if not word or word in _PODS:
        return WhySubject("", full_name)
    if word in _GROUPS:
        return WhySubject("podgroup", full_name)
    kind = WORKLOAD_SPELLINGS.get(word)
    if kind is None:
        hint = suggestion(kinds[0], _KINDS)
        fail(f"found {' '.join(words)}, {_EXPECTED}" + (f"; {hint}" if hint else ""))
    return WhySubject(kind, full_name)
