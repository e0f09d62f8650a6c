"""The CSV files of openb, with invented rows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.adapters.embedded.api_validation import problems
from bayplan.sim.input.openb import read_table

NODES = """sn,cpu_milli,memory_mib,gpu,model
n-0,64000,262144,2,P100
n-1,96000,393216,0,
"""
POD_COLUMNS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase"
PODS = f"""{POD_COLUMNS},creation_time,deletion_time,scheduled_time
p-0,12000,16384,1,1000,,LS,Running,100,400,150
p-1,6000,12288,2,500,V100M16|V100M32,BE,Failed,90,190,
p-2,6500,1024,0,0,,BE,Pending,95,,
"""
PODS_WITHOUT_TIMES = """name,cpu_milli,memory_mib,num_gpu,gpu_milli
p-0,12000,16384,1,1000
"""


def problems_of(text: str, *, with_times: bool = False) -> list[str]:
    return [str(problem) for problem in read_table(text, with_times=with_times).problems]


def test_a_node_row_is_a_node() -> None:
    table = read_table(NODES, with_times=False)
    first, second = table.nodes
    has = {"cpu": "64000m", "memory": "262144Mi", "nvidia.com/gpu": "2", "pods": "110"}
    assert first == {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": "n-0",
            "labels": {"kubernetes.io/hostname": "n-0", "bayplan.dev/gpu-model": "P100"},
        },
        "status": {"capacity": has, "allocatable": has},
    }
    assert second["metadata"]["labels"] == {"kubernetes.io/hostname": "n-1"}
    assert table.pods == table.problems == ()


def test_a_pod_row_becomes_a_pod_that_requests_whole_gpus() -> None:
    first, second, third = (one.content for one in read_table(PODS, with_times=False).pods)
    assert first["metadata"] == {
        "name": "p-0",
        "namespace": "default",
        "annotations": {"bayplan.dev/gpu-milli": "1000"},
    }
    (container,) = first["spec"]["containers"]
    assert container["resources"] == {
        "requests": {"cpu": "12000m", "memory": "16384Mi", "nvidia.com/gpu": "1"},
        "limits": {"nvidia.com/gpu": "1"},
    }
    assert second["metadata"]["annotations"]["bayplan.dev/gpu-spec"] == "V100M16|V100M32"
    assert "nvidia.com/gpu" not in third["spec"]["containers"][0]["resources"]["requests"]
    assert "status" not in second  # the pod's phase in the trace is not read


def test_objects_of_a_trace_are_valid() -> None:
    table = read_table(NODES, with_times=False)
    pods = read_table(PODS, with_times=True).pods
    for content in (*table.nodes, *(one.content for one in pods)):
        assert problems(content) == []


def test_times_give_arrival_and_duration() -> None:
    pods = read_table(PODS, with_times=True).pods
    assert [pod.at_seconds for pod in pods] == [100.0, 90.0, 95.0]
    notes = [pod.content["metadata"]["annotations"] for pod in pods]
    assert [note.get("bayplan.dev/duration") for note in notes] == ["250s", "100s", None]
    assert [note.get("bayplan.dev/when-done") for note in notes] == ["delete", "delete", None]


def test_without_times_pods_have_no_arrival() -> None:
    pods = read_table(PODS, with_times=False).pods
    assert [pod.at_seconds for pod in pods] == [0.0, 0.0, 0.0]
    assert "bayplan.dev/duration" not in pods[0].content["metadata"]["annotations"]


def test_a_list_without_times_cannot_be_replayed() -> None:
    assert problems_of(PODS_WITHOUT_TIMES) == []
    assert problems_of(PODS_WITHOUT_TIMES, with_times=True) == [
        "line 1: has no creation_time and deletion_time: it cannot be replayed with its times"
    ]


def pods_with(**changes: str) -> str:
    """One pod row with some changed fields."""
    row = {"name": "p-0", "cpu_milli": "1", "memory_mib": "1", "num_gpu": "1", "gpu_milli": "1"}
    row |= {"creation_time": "5", "deletion_time": "9", "scheduled_time": "6", **changes}
    return ",".join(row) + "\n" + ",".join(row.values()) + "\n"


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (
            {"cpu_milli": "many"},
            'line 2, cpu_milli: found "many", wanted a whole number from 0 up',
        ),
        (
            {"memory_mib": "-1"},
            'line 2, memory_mib: found "-1", wanted a whole number from 0 up',
        ),
        ({"num_gpu": "0.5"}, 'line 2, num_gpu: found "0.5", wanted a whole number from 0 up'),
        ({"gpu_milli": ""}, "line 2, gpu_milli: found nothing, wanted a whole number from 0 up"),
        ({"creation_time": ""}, "line 2, creation_time: found nothing, wanted a time in seconds"),
        (
            {"deletion_time": "late"},
            'line 2, deletion_time: found "late", wanted a time in seconds',
        ),
        ({"scheduled_time": "x"}, 'line 2, scheduled_time: found "x", wanted a time in seconds'),
    ],
)
def test_an_unreadable_field_is_reported_with_its_line(changes: dict[str, str], line: str) -> None:
    assert problems_of(pods_with(**changes), with_times=True) == [line]


def test_names_are_checked() -> None:
    (line,) = problems_of(pods_with(name="P 0"))
    assert line.startswith('line 2, name: found "P 0", wanted a DNS name')


def test_rows_have_the_length_of_the_header() -> None:
    assert problems_of(PODS_WITHOUT_TIMES + "p-1,1,1,1,1,surplus\n") == [
        "line 3: has more fields than the header"
    ]
    assert problems_of(PODS_WITHOUT_TIMES + "p-1,1\n") == [
        "line 3, memory_mib: found nothing, wanted a whole number from 0 up",
        "line 3, num_gpu: found nothing, wanted a whole number from 0 up",
        "line 3, gpu_milli: found nothing, wanted a whole number from 0 up",
    ]


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "sn,cpu_milli\n", "\n\n"])
def test_an_unknown_header_is_refused_with_the_known_headers(text: str) -> None:
    (line,) = problems_of(text)
    assert line.startswith("line 1: found ")
    assert "wanted openb's nodes (sn,cpu_milli,memory_mib,gpu,model) or pods (name," in line


def test_a_pod_may_end_before_its_start() -> None:
    table = read_table(pods_with(scheduled_time="20"), with_times=True)
    (pod,) = table.pods
    assert pod.content["metadata"]["annotations"]["bayplan.dev/duration"] == "0s"


@given(st.text(), st.booleans(), st.booleans())
def test_no_text_raises_an_exception(text: str, with_times: bool, with_header: bool) -> None:
    whole = PODS + text if with_header else text
    table = read_table(whole, with_times=with_times)
    for one in table.pods:
        assert problems(one.content) == []
