"""The short form of kube-scheduler's sentence about a pod: "52 lack cpu, 6 tainted, 2 cordoned".

The sentence is "0/60 nodes are available: 52 Insufficient cpu, 6 node(s) had untolerated taint(s),
2 node(s) were unschedulable. preemption: …". A group has a text before it, which stays, without the
member that was tried. A text that has no such sentence stays as it is.
"""

import re
from collections import Counter

#: What PostFilter plugins say, behind the reasons: "no new claims to deallocate", "preemption: …".
_SENTENCE = re.compile(
    r"^0/\d+ nodes are available: (?P<reasons>.*?)\.?"
    r"(?: (?:no new claims to deallocate|still not schedulable)[^:]*)?"
    r"(?: (?:pod group )?preemption: .*)?$"
)
#: "group shop/train: 2 of 8 members fit; the 3rd, shop/train-2: …".
_OF_GROUP = re.compile(r"^(?P<group>group \S+: \d+ of \d+ members fit)(?:; the \d+\w\w, \S+)?: ")
_REASON = re.compile(r"(?:^|, )(\d+) (.+?)(?=, \d+ |$)")
#: Beginnings of upstream's reasons, behind "node(s) ", and short words for them.
_SHORT = (
    ("Insufficient ", "lack "),
    ("Too many pods", "full of pods"),
    ("were unschedulable", "cordoned"),
    ("had untolerated taint", "tainted"),
    ("didn't match Pod's node affinity/selector", "not selected by node affinity"),
    ("didn't match pod affinity rules", "without the pods of its affinity"),
    ("didn't match pod anti-affinity rules", "with pods of its anti-affinity"),
    ("didn't satisfy existing pods anti-affinity rules", "kept by other pods' anti-affinity"),
    ("didn't match pod topology spread constraints (missing", "without the topology label"),
    ("didn't match pod topology spread constraints", "against the topology spread"),
    ("didn't have free ports", "lack the host port"),
    ("didn't have enough free storage", "lack storage"),
    ("did not have enough free storage", "lack storage"),
    ("didn't match PersistentVolume's node affinity", "out of reach of the volume"),
    ("had volume node affinity conflict", "out of reach of the volume"),
    ("had no available volume zone", "in another zone than the volume"),
    ("had no available disk", "with the disk in use"),
    ("unavailable due to PersistentVolumeClaim with ReadWriteOncePod", "with the claim in use"),
    (
        "unavailable due to one or more pvc(s) bound to non-existent pv(s)",
        "lack the claim's volume",
    ),
    ("didn't find available persistent volumes to bind", "lack a volume"),
    ("exceed max volume count", "full of volumes"),
    ("cannot allocate all claims", "lack devices"),
    ("resourceclaim not available on the node", "out of reach of the claim's devices"),
    ("didn't match Pod's required features", "lack a feature that the pod needs"),
    ("didn't match scheduler-enforced node affinity", "outside of the profile's node affinity"),
    ("didn't match the requested node name", "not the named node"),
)
#: These have the resource behind them.
_WITH_RESOURCE = ("Insufficient ",)


def short_reason(message: str) -> str:
    """The reasons with their numbers of nodes, the largest first; without preemption."""
    of_group = _OF_GROUP.match(message)
    if of_group is not None:
        return f"{of_group['group']}: {short_reason(message[of_group.end() :])}"
    sentence = _SENTENCE.match(message)
    if sentence is None:
        return message
    counts: Counter[str] = Counter()
    for count, reason in _REASON.findall(sentence["reasons"]):
        counts[short_words(reason)] += int(count)
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    return ", ".join(f"{count:,} {words}" for words, count in ordered) or message


def without_member(message: str) -> str:
    """The text about a group without the member that was tried, which is the same for all
    members."""
    return _OF_GROUP.sub(r"\g<group>: ", message)


def short_words(reason: str) -> str:
    """One reason in short words: "lack cpu" for "Insufficient cpu"."""
    own = reason.removeprefix("node(s) ")
    for beginning, words in _SHORT:
        if own.startswith(beginning):
            is_open = beginning in _WITH_RESOURCE
            return words + own.removeprefix(beginning) if is_open else words
    return own
