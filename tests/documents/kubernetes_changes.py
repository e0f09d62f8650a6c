"""docs/kubernetes-changes.md and docs/feature-gates.md, made from the tables of `config`.

    python -m tests.documents.kubernetes_changes

writes the pages again.
"""

from collections.abc import Iterator
from pathlib import Path

from bayplan.config.behaviour_table import CHANGES
from bayplan.config.feature_gates import Gate, default_gates, gates_of
from bayplan.config.gate_effects import EFFECTS, NOT_BUILT
from bayplan.config.kubernetes_versions import KubernetesVersion
from bayplan.config.metric_table import HISTORY, MetricStandard, metric_standard
from tests.documents.gate_tests import TESTS

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "kubernetes-changes.md"
GATES_PAGE = ROOT / "docs" / "feature-gates.md"
_HEAD = """# What versions of kube-scheduler do differently

This page is made from the tables in `src/bayplan/config`, by
`python -m tests.documents.kubernetes_changes`. It has every change that Bayplan knows, with the
first version that has it. "Recorded" means that answers of kube-scheduler show the change; "read"
means that it was read in the source, or for a preview in merged pull requests.
[Versions](versions.md) says how a version is checked.
"""
_GATES_HEAD = """# Feature gates

This page is made from the tables in `src/bayplan/config` and `tests/documents`, by
`python -m tests.documents.kubernetes_changes`. It has every gate that kube-scheduler reads in one
of the versions 1.34 to 1.38, with its effect in Bayplan and a test that shows the effect. Files
under `tests/parity/gated` have recorded answers of kube-scheduler with the gate on and off. The
states and defaults of the gates by version are in
[what versions of kube-scheduler do differently](kubernetes-changes.md#feature-gates).

Gates are set with `--feature-gates NAME=true,…`, as in kube-scheduler, or with `featureGates` in
the configuration, a field that kube-scheduler does not have. A state that is not built yet is
accepted, and a remark at start names it. A workload of scheduler_perf that needs such a state is
refused.
"""

#: Each has a column.
_VERSIONS = [v for v in KubernetesVersion if v is not KubernetesVersion.V1_37_0]


def page() -> str:
    """The whole page of changes."""
    return "\n".join((_HEAD, *_behaviours(), *_gates(), *_metrics()))


def _behaviours() -> Iterator[str]:
    for version in reversed(KubernetesVersion):
        rows = [change for change in CHANGES if change.since is version]
        if not rows:
            continue
        yield f"## New in {_title(version)}\n"
        yield "| part | change | upstream | known from |"
        yield "| --- | --- | --- | --- |"
        for row in rows:
            text = row.text.replace("|", "\\|")
            how = "recorded" if row.is_recorded else "read"
            yield f"| {row.part} | **{row.title}.** {text} | {row.source} | {how} |"
        yield ""


def _title(version: KubernetesVersion) -> str:
    patch = "1.37.1" if version is KubernetesVersion.V1_37 else str(version)
    return patch if version.is_recorded else f"{patch} (from merged pull requests, not recorded)"


def _gates() -> Iterator[str]:
    versions = _VERSIONS
    yield "## Feature gates\n"
    yield "Of kube-scheduler. A gate in *italics* is locked to its default. A dash means that the"
    yield "version does not have the gate, and that naming it is an error.\n"
    yield f"| gate | {' | '.join(versions)} |"
    yield "| --- |" + " --- |" * len(versions)
    names = sorted({name for version in versions for name in gates_of(version)})
    for name in names:
        cells = [_cell(gates_of(version).get(name)) for version in versions]
        yield f"| {name} | {' | '.join(cells)} |"
    yield ""


def _cell(gate: Gate | None) -> str:
    if gate is None:
        return "–"
    text = f"{gate.stage} {'on' if gate.default else 'off'}"
    return f"*{text}*" if gate.is_locked else text


def _metrics() -> Iterator[str]:
    yield "## Metrics\n"
    yield "Levels of metrics and values of labels that are not the same in all versions. Labels and"
    yield "buckets of a metric are. Before 1.37, the label `event` has UnschedulablePod in place of"
    yield "UnscheduledPod.\n"
    versions = [v for v in _VERSIONS if v.is_recorded]
    yield f"| metric or value | {' | '.join(versions)} |"
    yield "| --- |" + " --- |" * len(versions)
    standards = [metric_standard(default_gates(version)) for version in versions]
    for row in HISTORY.strip().splitlines():
        name = row.partition(": ")[0]
        cells = [_level(name, standard) for standard in standards]
        if len({*cells}) > 1:
            yield f"| `{name}{'*' * name.endswith('_')}` | {' | '.join(cells)} |"
    yield ""


def _level(name: str, standard: MetricStandard) -> str:
    if name in standard.absent:
        return "–"
    level, _, deprecated = standard.levels.get(name, "[yes]").lower()[1:].partition("]")
    return f"{level}, deprecated" if deprecated else level


def gates_page() -> str:
    """The whole page of gates."""
    return "\n".join((_GATES_HEAD, *_effects(), ""))


def _effects() -> Iterator[str]:
    yield "| gate | effect | test |"
    yield "| --- | --- | --- |"
    for name, effect in sorted(EFFECTS.items()):
        missing = [
            f"**Not built yet: {'on' if state else 'off'}** ({text})"
            for (gate, state), (_, text) in NOT_BUILT.items()
            if gate == name
        ]
        test = TESTS.get(name, "").replace("_", "\\_")
        yield f"| {name} | {' '.join((effect, *missing))} | {test or 'none yet'} |"


if __name__ == "__main__":
    GATES_PAGE.write_text(gates_page(), encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")
