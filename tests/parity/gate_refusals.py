"""Which feature gates kube-scheduler refuses, and in which words.

    python -m tests.parity.gate_refusals FOLDER... --seeds 0-99

Each folder has a program `kube-scheduler`; the name of the folder ends in the version, as in
bayplan-peer-v1.35.4. Every gate is set alone, on and off, and each seed draws settings of several
gates. kube-scheduler checks its gates first and then stops, because it cannot listen on the port
that it is given. The answers go to `tests/config/refused_gates.json`, which a test compares with
those of Bayplan. Settings that are accepted alone are not recorded.
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bayplan.config.feature_gates import STAGE_SWITCHES, Gate, every_gate_of, gate_names_of
from bayplan.config.kubernetes_versions import KubernetesVersion, version_of_release
from bayplan.rng import stream

RECORD = Path(__file__).parents[1] / "config" / "refused_gates.json"

_SECONDS_MAX = 30
_GATES_MAX = 8
#: How often a locked gate gets its own value.
_LOCKED_VALUES = 0.95
_TEXTS = re.compile(
    r"unrecognized feature gate: \w+"
    r"|cannot set feature gate \w+ to \w+, feature is locked to \w+"
    r"|\w+ is enabled, but depends on features that are disabled: \[[^\]]*\]"
)
#: What is wrong with the port, which kube-scheduler looks at after the gates.
_ACCEPTED = "must be between"


def refusals(program: Path, setting: str) -> list[str]:
    """The texts with which kube-scheduler refuses `--feature-gates`; none: it accepts them."""
    done = subprocess.run(
        [program, f"--feature-gates={setting}", "--secure-port=-1"],
        capture_output=True,
        text=True,
        timeout=_SECONDS_MAX,
        check=False,
    )
    *_, last = done.stderr.strip().splitlines()
    texts = sorted(set(_TEXTS.findall(last)))
    assert texts or _ACCEPTED in last, last
    return texts


def alone(version: KubernetesVersion) -> Iterator[str]:
    """Every gate of a version, on and off."""
    for name in (*every_gate_of(version), *STAGE_SWITCHES):
        yield from (f"{name}=true", f"{name}=false")


def drawn(version: KubernetesVersion, seed: int) -> str:
    """Settings of some gates: most of them need others or are needed, a few are locked, and some
    belong to other versions."""
    draw = stream(seed, f"gates of {version}")
    gates = every_gate_of(version)
    related = [name for name, gate in gates.items() if gate.needs]
    related += sorted({need for gate in gates.values() for need in gate.needs} & gates.keys())
    foreign = sorted({name for v in KubernetesVersion for name in every_gate_of(v)} - gates.keys())
    pools = (related or sorted(gates), sorted(gates), sorted(STAGE_SWITCHES), foreign)
    chosen = draw.choices(pools, (70, 24, 3, 3), k=draw.randint(1, _GATES_MAX))
    names = sorted({draw.choice(pool) for pool in chosen})
    values = {name: _value(gates.get(name), draw.random()) for name in names}
    return ",".join(f"{name}={value}" for name, value in values.items())


def _value(gate: Gate | None, chance: float) -> str:
    if gate is not None and gate.is_locked and chance < _LOCKED_VALUES:
        return "true" if gate.default else "false"
    return "true" if chance * 100 % 2 < 1 else "false"


def recorded(folder: Path, seeds: range) -> dict[str, dict[str, list[str]]]:
    """The answers of one program. Raises ValueError for a folder without one."""
    program, (_, _, release) = folder / "kube-scheduler", folder.name.rpartition("v")
    version = version_of_release(release)
    if not program.is_file() or version is None:
        raise ValueError(f"{folder}: wanted `kube-scheduler`, and a name such as peer-v1.35.4")
    assert gate_names_of(version)
    each = {setting: refusals(program, setting) for setting in alone(version)}
    several = {
        setting: refusals(program, setting) for setting in (drawn(version, seed) for seed in seeds)
    }
    print(f"{release}: {len(each)} alone, {len(several)} drawn", flush=True)
    return {"alone": {key: texts for key, texts in each.items() if texts}, "together": several}


def _text(record: Mapping[str, Mapping[str, Mapping[str, list[str]]]]) -> str:
    """JSON with one line for each setting."""
    text = json.dumps(record, indent=1)
    return re.sub(r"\n {4,}|(?<=\")\n {3}(?=\])", "", text) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.parity.gate_refusals", description=__doc__
    )
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--seeds", default="0-99", help="as in 0-99")
    options = parser.parse_args(arguments)
    first, _, last = options.seeds.partition("-")
    seeds = range(int(first), int(last or first) + 1)
    record = json.loads(RECORD.read_text()) if RECORD.is_file() else {}
    for folder in options.folders:
        record[folder.name.rpartition("v")[2]] = recorded(folder, seeds)
        RECORD.write_text(_text(record))
    return 0


if __name__ == "__main__":
    sys.exit(main())
