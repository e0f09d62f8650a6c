"""examples/compare_policies.py: a comparison from Python."""

import subprocess
import sys

from tests.examples.policies import EXAMPLES


def test_the_script_compares_two_configurations_in_separate_processes() -> None:
    script = EXAMPLES / "compare_policies.py"
    completed = subprocess.run(
        [sys.executable, str(script)], capture_output=True, check=True, text=True, timeout=100
    )
    lines = completed.stdout.splitlines()
    assert [line.split()[:2] for line in lines[:6]] == [
        [name, str(seed)] for name in ("spread", "packed") for seed in range(3)
    ]
    assert lines[6].startswith("packed against spread: ")
