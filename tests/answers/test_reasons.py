"""The short form of kube-scheduler's sentence."""

import pytest

from bayplan.answers.reasons import short_reason


@pytest.mark.parametrize(
    ("sentence", "short"),
    [
        ("0/2 nodes are available: 2 Insufficient cpu.", "2 lack cpu"),
        (
            (
                "0/60 nodes are available: 2 node(s) were unschedulable, 3 node(s) had untolerated "
                "taint(s), 3 node(s) had untolerated taint {a: b}, 52 Insufficient cpu. "
                "preemption: 0/60 nodes are available: 60 Preemption is not helpful for scheduling."
            ),
            "52 lack cpu, 6 tainted, 2 cordoned",
        ),
        (
            "0/3 nodes are available: 1 Too many pods, 2 Insufficient nvidia.com/gpu.",
            "2 lack nvidia.com/gpu, 1 full of pods",
        ),
        (
            (
                "0/3 nodes are available: 3 node(s) didn't match pod topology spread constraints "
                "(missing required label)."
            ),
            "3 without the topology label",
        ),
        (
            "0/3 nodes are available: 3 a plugin's own words, with a comma.",
            "3 a plugin's own words, with a comma",
        ),
        (
            (
                "0/9 nodes are available: 7 node(s) didn't match PersistentVolume's node affinity, "
                "2 node(s) had untolerated taint(s). no new claims to deallocate, preemption: "
                "0/9 nodes are available: 9 Preemption is not helpful for scheduling."
            ),
            "7 out of reach of the volume, 2 tainted",
        ),
        (
            (
                "group ml/train: 2 of 8 members fit; the 3rd, ml/train-2: 0/9 nodes are available: "
                "7 Insufficient cpu, 2 node(s) were unschedulable. pod group preemption: "
                "preemption is not helpful for scheduling the group"
            ),
            "group ml/train: 2 of 8 members fit: 7 lack cpu, 2 cordoned",
        ),
        (
            "group ml/train: 0 of 8 members fit: no domain has all of them",
            "group ml/train: 0 of 8 members fit: no domain has all of them",
        ),
        ("no nodes available to schedule pods", "no nodes available to schedule pods"),
        ("", ""),
    ],
)
def test_a_sentence_has_a_short_form_with_its_numbers(sentence: str, short: str) -> None:
    assert short_reason(sentence) == short
