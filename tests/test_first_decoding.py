"""Threads that decode types for the first time at the same moment, in a process of their own."""

import subprocess
import sys

_SCRIPT = """
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import msgspec
from bayplan.lazy_loader import built

sys.setswitchinterval(1e-6)
barrier = Barrier(2)

def decode(kind):
    barrier.wait()
    content = b'{"part": {"name": "a"}, "parts": [{"name": "b"}]}'
    return msgspec.json.decode(content, type=built(kind))

with ThreadPoolExecutor(2) as threads:
    for _ in range(100):
        part = msgspec.defstruct("Part", [("name", str)])
        whole = msgspec.defstruct("Whole", [("part", part), ("parts", list[part])])
        one, other = threads.map(decode, [whole, whole])
        assert one == other == whole(part("a"), [part("b")])
"""


def test_two_threads_decode_a_new_type_at_the_same_moment() -> None:
    """Without `built`, msgspec 0.22 crashes in this loop."""
    ended = subprocess.run([sys.executable, "-c", _SCRIPT], capture_output=True, check=False)
    assert ended.returncode == 0, ended.stderr.decode()
