"""How the commands of the documents are tried: each in exactly one way.

folder          run in a folder with a small cluster in files (`tests/documents/sandbox.py`)
server          started there, asked until it answers, and ended with SIGTERM
cluster         run beside a real API server (`tests/live/test_document_commands.py`)
cluster server  both
make            the target exists in the Makefile
chart           `helm template` renders the chart with the same values
not run         with the reason; the files that such a command names exist

A command of Bayplan that is not named here is run in the folder as it stands. `TRIALS` names those
that a reader fills in, those that are shortened, and those that need more than files.
"""

import re
from dataclasses import dataclass
from typing import Literal

from tests.documents.reading import Excerpt

Way = Literal["folder", "server", "cluster", "cluster server", "make", "chart", "not run"]
#: A program that answers questions about waiting pods.
Beside = Literal["", "scheduler", "scheduler with TLS"]

#: Stands for something that the reader has.
_PLACEHOLDER = re.compile(r"[…$]|(?<![\w-])(PATH|DIR|FILE|POD|NAME|NODE|N|HOST:PORT|\w+\.csv)\b")


@dataclass(frozen=True, kw_only=True)
class Trial:
    """``command``: with values for what a reader fills in; empty: as it stands. `{port}` becomes a
    free port, and `{address}` that of the scheduler ``beside``. ``exit_code``: negative for a
    program that the signal ends. ``prints``: a pattern in the
    output. ``url``: answers when a program works that ends at SIGTERM; `PRINTED`: see there."""

    command: str = ""
    cluster: bool = False
    beside: Beside = ""
    exit_code: int = 0
    prints: str = ""
    url: str = ""

    @property
    def way(self) -> Way:
        if self.cluster:
            return "cluster server" if self.url else "cluster"
        return "server" if self.url else "folder"


#: The program prints the URL.
PRINTED = "printed"
_HERE = "http://127.0.0.1:{port}"
#: What a shadow prints at its end: the lines of docs/shadow.md with other numbers.
_REPORT = (
    r"default-scheduler: [\d.]+ % of \d+ decisions? chose one of the shadow's best nodes,"
    r" in [\d.]+ s\n"
    r"\ndecisions +count\n─+\ncompared +\d+\n  node is best +\d+\n"
    r"  node is feasible, another has a higher score +\d+\n  node is not feasible +\d+\n"
)
_UNSCHEDULABLE = r"0/9 nodes are available: 9 Insufficient cpu\."
_TRIED = rf"{_UNSCHEDULABLE}(.|\n)*Causes\n(.|\n)*What would make it fit"
_DRAINED = r"drain n7(.|\n)* before +after\n(.|\n)*\nnodes +9 +{}\n"


def _shadow(command: str, prints: str = _REPORT) -> Trial:
    """A shadow that is ended before its time; its metrics tell that it has compared a decision."""
    return Trial(
        command=f"{command} --port {{port}}",
        cluster=True,
        url=f"{_HERE}/metrics",
        prints=prints,
    )


#: Command → how it is tried.
TRIALS: dict[str, Trial] = {
    # Values in place of what a reader fills in.
    "bayplan bench PATH… [--name REGEX] [--label-filter performance,-large] [--list]": Trial(
        command="bayplan bench benchmarks/scenarios --name 500Nodes"
        " --label-filter performance,-large --list",
        prints="Basic/500Nodes +performance",
    ),
    "bayplan bench $KUBERNETES/test/integration/scheduler_perf/affinity"
    " --label-filter short": Trial(
        command="bayplan bench upstream/affinity --label-filter short", prints="pods/s"
    ),
    "bayplan compare PATH… --config a.yaml --config b.yaml --seeds 0..9 --out DIR": Trial(
        command="bayplan compare cluster.yaml workload.yaml --config a.yaml --config b.yaml"
        " --seeds 0..1 --out compared"
    ),
    "bayplan compare NODES.csv gangs.yaml --metric gangs --metric held --metric waiting"
    " --config examples/gangs/one_pass.yaml --config examples/gangs/pod_by_pod.yaml": Trial(
        command="bayplan compare nodes.csv gangs.yaml --metric gangs --metric held --metric waiting"
        " --config examples/gangs/one_pass.yaml --config examples/gangs/pod_by_pod.yaml",
        prints="held_nvidia.com/gpu_hours",
    ),
    "bayplan compare examples/gpu_sharing/fragmentation.yaml --nodes NODES.csv --pods PODS.csv"
    " --out runs/study": Trial(
        command="bayplan compare examples/gpu_sharing/fragmentation.yaml --nodes nodes.csv"
        " --pods pods.csv --out runs/study --seeds 42",
        prints="unallocated_gpu_percent",
    ),
    "bayplan simulate PATH…": Trial(command="bayplan simulate cluster.yaml workload.yaml"),
    "bayplan why POD cluster.yaml": Trial(
        command="bayplan why default/waiting cluster.yaml",
        exit_code=1,
        prints=r"0/8 nodes are available: 8 Insufficient cpu\.",
    ),
    "bayplan why POD --no-fixes": Trial(
        command="bayplan why default/waiting cluster.yaml --no-fixes",
        exit_code=1,
        prints=r"0/8 nodes are available: 8 Insufficient cpu\.",
    ),
    # The run of the folder ends at 0 s.
    "bayplan why POD runs/a --at 10m": Trial(
        command="bayplan why default/waiting runs/a --at 0s",
        exit_code=1,
        prints=r"0/8 nodes are available: 8 Insufficient cpu\.(.|\n)*runs/a at 0 s",
    ),
    "bayplan fit -f job.yaml runs/a --at 5m": Trial(
        command="bayplan fit -f job.yaml runs/a --at 0s", prints="fit into runs/a at 0 s"
    ),
    "bayplan why POD --run DIR --node NODE": Trial(
        command="bayplan why default/waiting --run runs/a --node n1", prints="n1"
    ),
    # Shorter than they stand there.
    "bayplan bench benchmarks/scenarios --name 500Nodes": Trial(
        command="bayplan bench benchmarks/scenarios --name Basic/500Nodes", prints="pods/s"
    ),
    # Programs that run until they are ended. The page prints its address, which has a free port.
    "bayplan ui": Trial(cluster=True, url=PRINTED),
    "bayplan ui runs/a": Trial(url=PRINTED),
    "bayplan ui runs/a runs/b": Trial(url=PRINTED),
    "bayplan ui night": Trial(cluster=True, url=PRINTED),
    "bayplan serve-extender --config scheduler.yaml --plugin my_policy.py --port 8888": Trial(
        command="bayplan serve-extender --config scheduler.yaml --plugin my_policy.py"
        " --port {port}",
        cluster=True,
        url=f"{_HERE}/readyz",
    ),
    # Without a client, the standard input ends, and so does the program.
    "bayplan mcp": Trial(command="bayplan mcp", cluster=True),
    "bayplan mcp --http 8000 --token-file token": Trial(
        command="bayplan mcp cluster.yaml --http {port} --token-file token", url=f"{_HERE}/healthz"
    ),
    "bayplan webhook --port 9443": Trial(
        command="bayplan webhook --port {port}", cluster=True, url=f"{_HERE}/readyz"
    ),
    "bayplan headroom -f shapes.yaml --serve :9400 --interval 60s": Trial(
        command="bayplan headroom -f shapes.yaml --serve :{port} --interval 60s",
        cluster=True,
        url=f"{_HERE}/metrics",
    ),
    "bayplan run --kubeconfig ~/.kube/config --config scheduler.yaml --plugin my_policy.py": Trial(
        command="bayplan run --kubeconfig ~/.kube/config --config scheduler.yaml"
        " --plugin my_policy.py --secure-port={port}",
        cluster=True,
        url=f"{_HERE}/readyz",
    ),
    "bayplan run --kubeconfig ~/.kube/config --config scheduler.yaml --leader-elect=false": Trial(
        command="bayplan run --kubeconfig ~/.kube/config --config scheduler.yaml"
        " --leader-elect=false --secure-port={port}",
        cluster=True,
        url=f"{_HERE}/readyz",
    ),
    "bayplan run --config scheduler.yaml --ui": Trial(
        command="bayplan run --config scheduler.yaml --ui --secure-port={port}",
        cluster=True,
        url=f"{_HERE}/ui/",
    ),
    "bayplan shadow --for 10m": _shadow("bayplan shadow --for 10m"),
    "bayplan shadow --kubeconfig ~/.kube/config --for 10m": _shadow(
        "bayplan shadow --kubeconfig ~/.kube/config --for 10m"
    ),
    "bayplan shadow --for 1h --out DIR -o json": _shadow(
        "bayplan shadow --for 1h --out recorded -o json", r'"kind": ?"ShadowReport"'
    ),
    "bayplan shadow --for 1h --out night": _shadow("bayplan shadow --for 1h --out night"),
    "bayplan shadow --for 1h --policy packed.yaml": _shadow(
        "bayplan shadow --for 1h --policy packed.yaml",
        r"packed\.yaml: the pod's node is one of its best nodes in [\d.]+ % of \d+ decisions?;"
        r" it would have chosen no node in \d+",
    ),
    # What a shadow recorded.
    "bayplan simulate DIR/recording": Trial(
        command="bayplan simulate recorded/recording", cluster=True, prints="pods? placed on"
    ),
    "bayplan simulate DIR/recording --config packed.yaml": Trial(
        command="bayplan simulate recorded/recording --config packed.yaml",
        cluster=True,
        prints="pods? placed on",
    ),
    # Questions about the cluster that kubectl would use.
    "bayplan capture -o cluster.yaml": Trial(cluster=True),
    "bayplan capture --redact -o cluster.yaml": Trial(cluster=True),
    "bayplan fit -f job.yaml": Trial(cluster=True, prints=r"4 pods fit into"),
    "bayplan fit -f workload.yaml": Trial(cluster=True, prints=r"2 pods fit into"),
    "bayplan fit -f workload.yaml --context staging": Trial(
        cluster=True, prints=r"2 pods fit into"
    ),
    "bayplan fit --cpu 4 --memory 16Gi --gpu 1 --replicas 10": Trial(
        command="bayplan fit --cpu 4 --memory 16Gi --gpu 1 --replicas 10 examples/quickstart",
        exit_code=1,
        prints="2 of 10 pods fit into",
    ),
    "bayplan fit --cpu 2 --resource nvidia.com/mig-1g.5gb=1 cluster.yaml": Trial(
        exit_code=1, prints="no node offers nvidia.com/mig-1g.5gb"
    ),
    "bayplan whatif --drain n7 --add 2 --like n9": Trial(cluster=True, prints=_DRAINED.format(11)),
    "bayplan whatif --drain n7 --add 3 --like n9": Trial(cluster=True, prints=_DRAINED.format(12)),
    "bayplan whatif --drain-each": Trial(
        cluster=True, prints=r"\d of 9 nodes of .* can be drained"
    ),
    "bayplan whatif --scale deploy/web=20 --namespace shop": Trial(
        cluster=True, prints=r"scale Deployment shop/web to 20"
    ),
    "bayplan why default/web-3": Trial(cluster=True, exit_code=1, prints=_TRIED),
    "bayplan why --all-pending": Trial(cluster=True, exit_code=1, prints=r"pods? of .* waits?\n"),
    "bayplan why POD": Trial(
        command="bayplan why waiting", cluster=True, exit_code=1, prints=_TRIED
    ),
    "bayplan why POD -n NAME": Trial(
        command="bayplan why waiting -n default", cluster=True, exit_code=1, prints=_TRIED
    ),
    "bayplan why POD -n NAME --context NAME": Trial(
        command="bayplan why waiting -n default --context staging",
        cluster=True,
        exit_code=1,
        prints=_TRIED,
    ),
    # Questions that a scheduler answers.
    "bayplan why default/web-3 --address 127.0.0.1:10259": Trial(
        command="bayplan why default/web-3 --address {address}",
        cluster=True,
        beside="scheduler",
        prints=_UNSCHEDULABLE,
    ),
    "bayplan why POD --address HOST:PORT --attempt N --node NODE": Trial(
        command="bayplan why default/waiting --address {address} --attempt 1 --node n1",
        cluster=True,
        beside="scheduler",
        prints="n1",
    ),
    "bayplan why default/web-3 --address https://127.0.0.1:10259 --token-file token": Trial(
        command="bayplan why default/web-3 --address https://{address} --token-file token",
        cluster=True,
        beside="scheduler with TLS",
        prints=_UNSCHEDULABLE,
    ),
}

#: Program → why no test runs its commands.
NOT_RUN = {
    ".": "the shell takes an environment into use; the tests run in one",
    "docker": "builds and pushes an image: needs Docker, a registry and the network",
    "kubectl": "the tests have an API server and no kubectl",
    "pip": "installs a package; `make release-check` installs the wheel into new environments",
    "pipx": "fetches a package",
    "uvx": "fetches a package",
    "pytest": "runs tests that stand in this folder",
    "python -m": "a measurement that takes minutes",
    "python3 -m": "makes an environment; `make release-check` does it, too",
}
#: Commands of other programs that are run in the folder.
SCRIPTS = {
    "python examples/gangs/generate.py NODES.csv --gangs 500 --load 2 --seed 1 > gangs.yaml": Trial(
        command="python examples/gangs/generate.py nodes.csv --gangs 5 --load 2 --seed 1"
        " > gangs.yaml"
    ),
}


def trial_of(excerpt: Excerpt) -> Trial:
    """Of a command of ours, or of a script."""
    return TRIALS.get(excerpt.command) or SCRIPTS.get(excerpt.command) or Trial()


def ways_of(excerpt: Excerpt) -> list[Way]:
    """All that claim a command; a document is right if there is one."""
    if excerpt.kind == "command":
        is_open = bool(_PLACEHOLDER.search(excerpt.command)) and not trial_of(excerpt).command
        return [] if is_open else [trial_of(excerpt).way]
    if excerpt.command in SCRIPTS:
        return ["folder"]
    program = program_of(excerpt)
    ways: list[Way] = []
    if program == "make":
        ways.append("make")
    if program == "helm":
        ways.append("chart")
    if program in NOT_RUN:
        ways.append("not run")
    return ways


def program_of(excerpt: Excerpt) -> str:
    """Of a command of another program: its name, without variables before it."""
    words = excerpt.command.split()
    while "=" in words[0]:
        words = words[1:]
    return " ".join(words[:2]) if words[1:2] == ["-m"] else words[0]
