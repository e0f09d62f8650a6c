"""The folder of a shadow for the tests of the page: 40 decisions, some of which disagree."""

from pathlib import Path

from bayplan.shadow.folder import DecisionFile, write_report
from bayplan.shadow.report import ShadowReport
from bayplan.shadow.shadow import Shadow, ShadowOptions
from bayplan.testing import node, pod
from tests.model.clusters import model_of
from tests.shadow.streams import Stream

DECISIONS = 40
#: Fewer than the disagreements, so that only the folder has all.
LISTED_MAX = 3


def write_shadow(folder: Path) -> ShadowReport:
    nodes = [node(f"n{number}", cpu="16", memory="64Gi") for number in range(4)]
    nodes.append(node("tainted", cpu="16", taints=["a=b:NoSchedule"]))
    file = DecisionFile(folder)
    options = ShadowOptions(disagreements_max=LISTED_MAX)
    shadow = Shadow(model_of(nodes), options=options, on_decision=file.write)
    stream = Stream(shadow)
    for number in range(DECISIONS):
        web = pod(f"web-{number}", cpu="1")
        stream.create(web)
        stream.wait(1.0)
        stream.bind(web, "tainted" if number == 20 else f"n{number // 8 % 4}")
        stream.wait(2.0)
    report = stream.report()
    file.close()
    write_report(folder, report)
    return report
