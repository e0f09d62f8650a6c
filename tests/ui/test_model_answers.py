"""What-if, fixes and rejections: the engine's answers, at a change of the run."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from bayplan.api.objects import NODE, POD, Pod
from bayplan.explain.explainer import explain_pod
from bayplan.explain.explanation import Explanation
from bayplan.sim.input.what_if import NewNodes, Scaling, WhatIf
from bayplan.ui import model_answers, pages
from bayplan.ui.computations import Computations, ComputationState, Deadline
from bayplan.ui.model_answers import (
    CauseFixes,
    NodeRejections,
    WorkloadPage,
    explanation_answer,
    pending_pods,
)
from bayplan.ui.subjects import ClusterSubject, RunSubject
from bayplan.whatif.all_pending import PendingPods, all_pending
from bayplan.whatif.comparison import WhatIfAnswer, what_if
from bayplan.yaml_documents import load_documents
from tests.ui.example_cluster import CLUSTER
from tests.ui.fetching import WAIT_SECONDS, answer_of, fetched, packed, ready

CONFIGURATION = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


# ---- the objects at a change ----------------------------------------------------------------


@pytest.mark.parametrize("change", [0, 1, 50, 123, 300, 450])
def test_the_objects_of_a_change_are_those_of_the_timeline(
    subject: RunSubject, change: int
) -> None:
    objects, state = (
        subject.moment(change, lambda: None).objects,
        subject.timeline.state(change),
    )
    line = subject.timeline
    nodes = {node.metadata.name for node in objects.of(NODE)}
    assert nodes == {line.node_names[row] for row in state.there.tolist()}
    placed = {}
    for pod in objects.of(POD):
        assert isinstance(pod, Pod)
        placed[f"{pod.metadata.namespace}/{pod.metadata.name}"] = pod.spec.node_name
    expected = {line.pods[row].name: None for row in state.waiting.tolist()} | {
        line.pods[row].name: line.node_names[node]
        for row, node in enumerate(state.node_of_pod.tolist())
        if node >= 0
    }
    assert placed == expected


# ---- what-if --------------------------------------------------------------------------------


def test_a_what_if_is_about_the_state_at_its_change(subject: RunSubject) -> None:
    page = answer_of(subject, "whatif?at=300&drain=n0&force=1&add=n3=1", WhatIfAnswer).value
    state = subject.timeline.state(300)
    assert page.text == "add 1 node like n3, drain n0"
    assert (page.before.nodes, page.before.waiting) == (len(state.there), len(state.waiting))
    after = page.after
    assert (after.nodes, after.schedulable_nodes) == (len(state.there) + 1, len(state.there))
    assert page.before.utilization["cpu"].requested == state.used[state.there].sum(0)[0]
    (evicted,) = (one for one in page.reasons if one.outcome == "gone")
    assert evicted.reason == "evicted"
    assert evicted.pods == len(state.pods_on(subject.timeline.node_rows["n0"]))
    assert page.before.waiting - page.after.waiting == len(page.moves)


def test_a_budget_that_blocks_is_named(cluster: ClusterSubject) -> None:
    page = answer_of(cluster, "whatif?drain=a", WhatIfAnswer).value
    (blocked,) = (one for one in page.reasons if one.outcome == "not evicted")
    assert blocked.budgets == ("default/one-at-a-time",)
    assert blocked.examples == ("default/db-0",)


def test_pods_that_do_not_fit_are_grouped_by_message(cluster: ClusterSubject) -> None:
    page = answer_of(cluster, "whatif?scale=default/Deployment/web=9", WhatIfAnswer).value
    by_reason = {one.reason: one for one in page.reasons}
    assert sum(one.pods for one in page.reasons) == page.after.waiting
    assert sum(one.waited_before for one in page.reasons) < len(by_reason) + 9
    assert all("Insufficient cpu" in reason for reason in by_reason)


def test_moves_are_paged_and_the_table_has_all(cluster: ClusterSubject) -> None:
    question = "scale=default/Deployment/web=5"
    first = answer_of(cluster, f"whatif?{question}&limit=1", WhatIfAnswer)
    assert (first.offset, len(first.value.moves)) == (0, 1)
    assert first.total >= 2
    second = answer_of(cluster, f"whatif?{question}&limit=1&offset=1", WhatIfAnswer)
    assert second.value.moves != first.value.moves
    response, body = fetched([cluster], f"api/whatif.csv?{question}")
    assert response.status == 200
    lines = body.decode().splitlines()
    assert lines[0] == "pod,outcome,from,to,why"
    assert sum(",gets a node," in line for line in lines) == first.total


def test_a_text_is_applied_as_a_file_is_by_the_command(cluster: ClusterSubject) -> None:
    (web,) = (text for text in CLUSTER.split("---") if "kind: Deployment" in text)
    larger = web.replace("replicas: 2", "replicas: 9")
    answer = answer_of(cluster, f"whatif?apply={packed(larger)}", WhatIfAnswer).value
    opened = cluster.model(0, lambda: None)
    change = WhatIf(apply=(load_documents(larger, "web")[0].value,))
    assert answer == what_if(opened.model, change, opened.read, opened.kinds)
    assert answer.text == "apply 1 object"
    assert (len(answer.moves), len(answer.left_over)) == (5, 2)


def test_another_configuration_is_compared_with_that_of_the_page(cluster: ClusterSubject) -> None:
    other = f"{CONFIGURATION}profiles: [{{schedulerName: other}}]"
    answer = answer_of(cluster, f"whatif?config={packed(other)}", WhatIfAnswer).value
    assert {one.source for one in answer.left_over} == {"a"}
    assert {one.message for one in answer.left_over} == {
        "no profile is named default-scheduler; the profiles are other"
    }


def test_a_wrong_configuration_is_refused_with_its_place(cluster: ClusterSubject) -> None:
    text = f"{CONFIGURATION}profile: []".encode()
    computed = ready(lambda: model_answers.computed_configuration(cluster, 0, text))
    expected = 'the other configuration: profile: unknown field; did you mean "profiles"?'
    assert (computed.phase, computed.problem) == ("failed", expected)


def test_a_workload_that_does_not_exist_is_named(cluster: ClusterSubject) -> None:
    def ask() -> ComputationState:
        scaling = Scaling(kind="Deployment", name="wbe", replicas=3)
        changes = WhatIf(scale=(scaling,))
        return model_answers.computed_what_if(cluster, 0, changes, force=False)

    computed = ready(ask)
    assert computed.phase == "failed"
    assert computed.problem.startswith("there is no Deployment default/wbe")


def test_pods_that_wait_have_the_causes_and_fixes_of_the_command(cluster: ClusterSubject) -> None:
    page = answer_of(cluster, "pending", PendingPods)
    assert page.value == all_pending(cluster.model(0, lambda: None).model)
    (group,) = page.value.groups
    assert (group.workload, group.short_message) == ("Pod default/large", "2 lack cpu")
    second = answer_of(cluster, "pending?offset=1&limit=1", PendingPods)
    assert (second.total, second.offset, second.value.groups) == (1, 1, ())
    sought = answer_of(cluster, "pending?workload=Pod%20default/large&limit=1", PendingPods)
    assert (sought.offset, sought.value.groups) == (0, (group,))
    response, body = fetched([cluster], "api/pending.csv")
    assert response.status == 200
    assert body.decode().splitlines()[0].startswith("workload,pods,cause")


def test_a_cause_has_the_fix_of_its_largest_workload(cluster: ClusterSubject) -> None:
    line = cluster.timeline
    causes = pages.waiting(line.state(line.last_change)).groups
    (number,) = [one.number for one in causes if one.cause.kind == "unschedulable"]
    groups = answer_of(cluster, "fixes", CauseFixes).value.groups
    (pending,) = answer_of(cluster, "pending", PendingPods).value.groups
    assert groups == {number: pending}
    assert pending.fix is not None


def test_workloads_are_listed_with_their_pods(cluster: ClusterSubject) -> None:
    page = answer_of(cluster, "workloads", WorkloadPage).value
    assert [(row.kind, row.name, row.pods) for row in page.rows] == [
        ("Deployment", "default/web", 2),
        ("StatefulSet", "default/db", 1),
    ]


def test_a_computation_ends_when_the_page_is_closed(subject: RunSubject) -> None:
    with ThreadPoolExecutor(1) as worker:
        computations = Computations(worker, worker, lambda: True, str)
        answer = ready(lambda: computations.ask("key", lambda deadline: deadline.check()))
    assert (answer.phase, answer.problem) == ("failed", "the page was closed")


def test_the_queue_of_computations_is_short_and_prefers_the_newest() -> None:
    with ThreadPoolExecutor(1) as worker:
        computations = Computations(worker, worker, lambda: False, str)
        ran: list[int] = []
        for number in range(20):
            computations.ask(number, lambda deadline, n=number: ran.append(n) or Event().wait(0.05))
        assert ready(lambda: computations.ask(19, lambda deadline: None)).phase == "ready"
    assert 19 in ran
    assert len(ran) <= 6


def test_short_answers_come_while_a_long_one_is_computed() -> None:
    steps: list[str] = []
    is_asked = Event()

    def compute_long(deadline: Deadline) -> str:
        steps.append("first step")
        assert is_asked.wait(WAIT_SECONDS)
        while "short" not in steps:
            deadline.check()
        steps.append("last step")
        return "long"

    with ThreadPoolExecutor(1) as worker, ThreadPoolExecutor(1) as long_worker:
        computations = Computations(worker, long_worker, lambda: False, str)
        computations.ask("long", compute_long, is_long=True)
        computations.ask("short", lambda _: steps.append("short"))
        is_asked.set()
        short = ready(lambda: computations.ask("short", lambda _: None))
        long = ready(lambda: computations.ask("long", compute_long, is_long=True))
    assert (short.phase, long.value) == ("ready", "long")
    assert steps.index("short") < steps.index("last step")


def test_why_all_pods_wait_and_why_one_waits_are_asked_at_once(cluster: ClusterSubject) -> None:
    model = cluster.model(0, lambda: None).model
    expected, one = all_pending(model), explain_pod(model, "default/large")
    pending_pods(cluster, 0)
    answer = ready(lambda: explanation_answer(cluster, 0, "default/large"))
    assert answer.value == one
    assert ready(lambda: pending_pods(cluster, 0)).value == expected


# ---- a pod, a node --------------------------------------------------------------------------


def test_fixes_of_a_pod_at_a_change_have_been_tried(subject: RunSubject) -> None:
    answer = answer_of(subject, "explanation?pod=default/huge&at=300", Explanation).value
    assert answer.result == "unschedulable"
    assert answer.fixes[0].steps == ("lower the request for cpu from 900 to 1",)
    assert answer.trials > 0


def test_a_cluster_without_a_run_explains_its_waiting_pods(cluster: ClusterSubject) -> None:
    answer = answer_of(cluster, "explanation?pod=default/large", Explanation).value
    assert answer.result == "unschedulable"
    assert {cause.reason for cause in answer.causes} == {"Insufficient cpu"}


def test_a_node_has_its_rejections_up_to_a_moment(subject: RunSubject) -> None:
    early = answer_of(subject, "rejections?node=n3&at=100", NodeRejections).value
    late = answer_of(subject, "rejections?node=n3&at=450", NodeRejections).value
    assert 0 <= early.rejecting < late.rejecting <= late.attempts
    assert {row.reason for row in late.rows} >= {"Insufficient cpu"}
    assert [row.change for row in late.rows] == sorted(
        (row.change for row in late.rows), reverse=True
    )
    assert all(row.change <= 450 for row in late.rows)


def test_rejections_of_a_node_agree_with_the_journal(subject: RunSubject) -> None:
    """If an attempt has no feasible node, each node has rejected the pod."""
    late = subject.timeline.last_change
    row = answer_of(subject, "rejections?node=n0", NodeRejections).value.rows[0]
    record = subject.decision(row.pod, row.attempt).record
    assert row.change <= late
    assert (row.plugin, row.reason) in {(one.plugin, one.reason) for one in record.rejections}


def test_a_cluster_without_a_run_has_the_rejections_that_a_node_would_cause(
    cluster: ClusterSubject,
) -> None:
    answer = answer_of(cluster, "rejections?node=b", NodeRejections).value
    assert answer.is_now
    assert [(row.pod, row.reason) for row in answer.rows] == [("default/large", "Insufficient cpu")]


def test_new_nodes_are_counted(subject: RunSubject) -> None:
    end = subject.timeline.last_change
    changes = WhatIf(add=(NewNodes(template="n3", count=2),))
    computed = ready(lambda: model_answers.computed_what_if(subject, end, changes, force=False))
    page = computed.part(0, 10).value
    assert page.after.nodes == page.before.nodes + 2
    assert Path(subject.folder.path).name == subject.name


def test_a_cluster_without_a_run_groups_its_waiting_pods_by_cause(cluster: ClusterSubject) -> None:
    waiting = pages.waiting(cluster.timeline.state(cluster.timeline.last_change))
    causes = {group.example: group.cause for group in waiting.groups}
    assert causes.pop("default/large").parts[0].reason == "Insufficient cpu"
    (web,) = causes
    assert web.startswith("default/web-")
    assert causes[web].kind == "fits"
    assert [group.pods for group in waiting.groups] == [2, 1]
