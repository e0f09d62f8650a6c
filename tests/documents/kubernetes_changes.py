"""docs/kubernetes-changes.md, made from the tables of `config`.

    python -m tests.documents.kubernetes_changes

writes the page again.
"""

from collections.abc import Iterator
from pathlib import Path

from bayplan.config.behaviour import CHANGES
from bayplan.config.feature_gates import Gate, gates_of
from bayplan.config.kubernetes_versions import KubernetesVersion

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "kubernetes-changes.md"
_HEAD = """# What versions of kube-scheduler do differently

This page is made from the tables in `src/bayplan/config`, by
`python -m tests.documents.kubernetes_changes`. It has every change that Bayplan knows, with the
first version that has it. "Recorded" means that answers of kube-scheduler show the change; "read"
means that it was read in the source, or for a preview in merged pull requests.
[Versions](versions.md) says how a version is checked.
"""


def page() -> str:
    """The whole page."""
    return "\n".join((_HEAD, *_behaviours(), *_gates()))


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
    versions = [v for v in KubernetesVersion if v is not KubernetesVersion.V1_37_0]
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


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
