"""The shadow compares recorded events: no API server, no clock."""

from collections import deque
from heapq import heappop, heappush
from operator import itemgetter

import pytest

from bayplan import rng
from bayplan.api.objects import NODE, POD
from bayplan.model.cluster_model import ClusterModel
from bayplan.shadow.judgement import SECONDS_MAX
from bayplan.shadow.shadow import LONGER_FROM_SECONDS, Shadow, ShadowOptions
from bayplan.state.pods import PodInfo
from bayplan.testing import node, pod
from tests.model.clusters import model_of
from tests.shadow.streams import Stream


def stream_of(model: ClusterModel, policy: ClusterModel | None = None) -> Stream:
    return Stream(Shadow(model, policy=policy))


def two_nodes() -> ClusterModel:
    return model_of([node("small", cpu="2"), node("large", cpu="8")])


def test_a_node_with_the_highest_total_is_best() -> None:
    stream, web = stream_of(two_nodes()), pod("web", cpu="1")
    stream.create(web)
    stream.bind(web, "large")
    report = stream.report()
    assert report.decisions.compared == report.decisions.best == 1
    assert report.decisions.share_best == 1.0
    assert report.decisions.median_best_nodes == 1
    assert report.disagreements == ()
    assert report.waiting.pending == 0


def test_one_of_several_equal_nodes_is_best() -> None:
    names = [f"n{number}" for number in range(5)]
    stream = stream_of(model_of([node(name, cpu="4") for name in names]))
    for name in names:
        web = pod(f"web-{name}", cpu="1")
        stream.create(web)
        stream.bind(web, name)
    decisions = stream.report().decisions
    assert decisions.best == 5
    assert decisions.median_best_nodes == 3


def test_a_node_with_a_lower_total_is_reported_with_the_plugins_that_differ() -> None:
    stream, web = stream_of(two_nodes()), pod("web", cpu="1")
    stream.create(web)
    stream.bind(web, "small")
    report = stream.report()
    (line,) = report.disagreements
    assert (line.result, line.node, line.shadow_node) == ("lower", "small", "large")
    assert line.points == sum(line.plugin_points.values()) > 0
    assert line.plugin_points["NodeResourcesFit"] > 0
    assert not line.best_when_reordered
    (fit,) = [each for each in report.plugins if each.plugin == "NodeResourcesFit"]
    assert (fit.favours_shadow, fit.rejected) == (1, 0)
    assert fit.points == line.plugin_points["NodeResourcesFit"]


def test_a_rejected_node_is_reported_with_the_plugin_and_its_message() -> None:
    stream, web = stream_of(two_nodes()), pod("web", cpu="4")
    stream.create(web)
    stream.bind(web, "small")
    (line,) = stream.report().disagreements
    assert (line.result, line.plugin) == ("rejected", "NodeResourcesFit")
    assert line.message == "Insufficient cpu"
    assert line.shadow_node == "large"


def test_a_node_that_the_shadow_lacks_is_rejected_by_no_plugin() -> None:
    stream, web = stream_of(two_nodes()), pod("web", cpu="1")
    stream.create(web)
    stream.bind(web, "elsewhere")
    (line,) = stream.report().disagreements
    assert (line.result, line.plugin) == ("rejected", "")
    assert line.message == "the node is not in the shadow's cluster"


def test_a_pod_whose_node_arrives_after_its_binding_agrees_on_a_later_state() -> None:
    stream, web = stream_of(two_nodes()), pod("web", cpu="1")
    stream.create(web)
    stream.bind(web, "huge")
    stream.event(NODE, node("huge", cpu="64"))
    report = stream.report()
    assert report.disagreements[0].best_when_reordered
    assert report.decisions.best_when_reordered == 1
    assert report.plugins == ()


def test_bindings_in_the_other_order_agree_when_reordered() -> None:
    """If the first pod is decided first, both decisions agree: it takes the larger node."""
    nodes = [node("a", cpu="4"), node("b", cpu="3500m")]
    first, second = pod("first", cpu="2"), pod("second", cpu="2")
    in_order = stream_of(model_of(nodes))
    in_order.create(first, second)
    in_order.bind(first, "a")
    in_order.bind(second, "b")
    assert in_order.report().decisions.best == 2
    swapped = stream_of(model_of(nodes))
    swapped.create(first, second)
    swapped.bind(second, "b")
    swapped.bind(first, "a")
    decisions = swapped.report().decisions
    assert decisions.best == 1
    assert decisions.lower == decisions.best_when_reordered == 1
    assert decisions.share_best_when_reordered == 1.0


@pytest.mark.parametrize(("seconds", "reordered_count"), [(20.0, 1), (SECONDS_MAX + 1.0, 0)])
def test_bindings_that_arrive_far_apart_are_not_reordered(
    seconds: float, reordered_count: int
) -> None:
    nodes = [node("a", cpu="4"), node("b", cpu="3500m")]
    first, second = pod("first", cpu="2"), pod("second", cpu="2")
    stream = stream_of(model_of(nodes))
    stream.create(first, second)
    stream.bind(second, "b")
    stream.wait(seconds)
    stream.shadow.check_waiting(stream.now)
    stream.bind(first, "a")
    assert stream.report().decisions.best_when_reordered == reordered_count


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("priorities", [(0,), (0, 10)], ids=["one priority", "two priorities"])
def test_each_decision_of_a_scheduler_whose_bindings_are_slow_is_best_in_its_queue_order(
    seed: int, priorities: tuple[int, ...]
) -> None:
    """A scheduler decides in the order of its queue about the pods that it knows by then. Its
    bindings take up to ten seconds, so that many of them arrive in another order."""
    random, count = rng.stream(seed, "bindings in flight"), 100
    nodes = [node(f"n{number}", cpu=f"{20 + int(40 * random.random())}") for number in range(12)]
    scheduler, shadow = model_of(nodes), stream_of(model_of(nodes))
    arrivals: list[tuple[float, PodInfo, str]] = []
    for number in range(count):
        priority = priorities[int(len(priorities) * random.random())]
        each = pod(f"p{number}", cpu=f"{50 + int(900 * random.random())}m", priority=priority)
        arrivals.append((3 * random.random(), each, ""))
    arrivals.sort(key=itemgetter(0))
    bindings: list[tuple[float, PodInfo, str]] = []
    known, now = deque(arrivals), 0.0
    queue: list[tuple[int, int, PodInfo]] = []
    while known or queue:
        now = max(now, known[0][0]) if not queue else now
        while known and known[0][0] <= now:
            each = known.popleft()[1]
            heappush(queue, (-(each.pod.spec.priority or 0), count - len(known), each))
        each = heappop(queue)[-1]
        scheduler.add(POD, each.pod)
        chosen = scheduler.attempt(each.key).node
        scheduler.remove(POD, each.namespace, each.name)
        scheduler.add(POD, each.on_node(chosen).pod)
        now += 0.02
        bindings.append((now + 10 * random.random() ** 4, each, chosen))
    for at_seconds, each, chosen in sorted(arrivals + bindings, key=itemgetter(0)):
        shadow.wait(at_seconds - shadow.now)
        if chosen:
            shadow.bind(each, chosen)
        else:
            shadow.create(each)
    report = shadow.report()
    assert report.decisions.lower > count / 10
    unexplained = [each for each in report.disagreements if not each.best_when_reordered]
    assert not unexplained, f"seed {seed}, {len(unexplained)} decisions: {unexplained}"


def test_a_review_leaves_the_model_unchanged() -> None:
    model = two_nodes()
    stream = stream_of(model)
    for number in range(6):
        web = pod(f"web-{number}", cpu="100m")
        stream.create(web)
        stream.bind(web, "small")
    stream.report()
    table = model.scheduler.cache.table
    counts = {name: len(table.pods[row]) for name, row in table.row_of.items()}
    assert counts == {"small": 6, "large": 0}
    assert not model.pending()


def test_pods_of_other_schedulers_only_take_room() -> None:
    stream, foreign = stream_of(two_nodes()), pod("foreign", cpu="8", scheduler_name="theirs")
    stream.create(foreign)
    stream.bind(foreign, "large")
    web = pod("web", cpu="1")
    stream.create(web)
    stream.bind(web, "small")
    decisions = stream.report().decisions
    assert (decisions.compared, decisions.best) == (1, 1)


def test_a_pod_that_arrives_with_its_node_is_counted_and_not_compared() -> None:
    stream = stream_of(two_nodes())
    stream.create(pod("web", node="large", cpu="1"))
    decisions = stream.report().decisions
    assert (decisions.compared, decisions.first_seen_bound) == (0, 1)
    assert decisions.share_best is None


def test_bindings_of_a_relist_are_counted_and_not_compared() -> None:
    stream, web = stream_of(two_nodes()), pod("web", cpu="1")
    stream.create(web)
    stream.shadow.relisted(POD, 1, stream.now)
    stream.bind(web, "small", is_listed=True)
    report = stream.report()
    assert (report.decisions.compared, report.decisions.unordered) == (0, 1)
    assert report.stream.missed_events == 1
    assert [(each.kind, each.changes) for each in report.stream.relists] == [(POD, 1)]


def test_a_pod_that_fits_and_stays_pending_waits_longer_than_in_the_shadow() -> None:
    stream, web, big = stream_of(two_nodes()), pod("web", cpu="1"), pod("big", cpu="100")
    stream.create(web, big)
    stream.shadow.check_waiting(stream.now)
    stream.wait(LONGER_FROM_SECONDS)
    stream.bind(web, "large")
    waiting = stream.report().waiting
    (line,) = waiting.pods
    assert (line.pod, line.node, line.fitted_seconds) == ("default/web", "large", 5.0)
    assert (waiting.longer, waiting.pending) == (1, 1)
    assert waiting.median_seconds == 5.0


def test_a_pod_that_fits_only_for_a_moment_does_not_wait_longer() -> None:
    stream, web, room = stream_of(two_nodes()), pod("web", cpu="8"), pod("x", node="large", cpu="8")
    stream.create(web)
    stream.shadow.check_waiting(stream.now)
    stream.create(room)
    stream.wait(1.0)
    stream.shadow.check_waiting(stream.now)
    stream.wait(60.0)
    assert stream.report().waiting.longer == 0


def test_a_policy_is_compared_on_the_same_states() -> None:
    policy = model_of([node("small", cpu="2"), node("large", cpu="8")])
    stream = stream_of(two_nodes(), policy)
    first, second = pod("first", cpu="1"), pod("second", cpu="1")
    stream.create(first, second)
    stream.bind(first, "large")
    stream.bind(second, "small")
    compared = stream.report().policy
    assert compared is not None
    assert (compared.compared, compared.equal, compared.share_equal) == (2, 1, 0.5)
    assert [(each.node, each.policy_node) for each in compared.decisions] == [("small", "large")]
    assert compared.omitted == 0


def test_the_number_of_disagreements_in_the_report_is_bounded() -> None:
    stream = Stream(Shadow(two_nodes(), options=ShadowOptions(disagreements_max=2)))
    for number in range(5):
        web = pod(f"web-{number}", cpu="100m")
        stream.create(web)
        stream.bind(web, "small")
    report = stream.report()
    assert len(report.disagreements) == 2
    assert report.disagreements_omitted == 3


def test_a_gated_pod_that_has_a_node_is_not_compared() -> None:
    stream, gated = stream_of(two_nodes()), pod("gated", gates=["wait"])
    stream.create(gated)
    stream.bind(gated, "large")
    decisions = stream.report().decisions
    assert (decisions.compared, decisions.untried) == (0, 1)
