"""Chance, handed in: the only importer of ``random``.

Two kinds of chance exist here. Streams by name serve the world (faults, jitter): two streams of
one seed never disturb each other. Ties between nodes are drawn by identity, so that the same pod
at the same attempt draws alike wherever and however its answer was computed.
"""

import hashlib
import random

_HASH_BYTES = 8

#: What `stream` gives; named here, so that a type can be said without importing ``random``.
Stream = random.Random


def stream(seed: int, name: str) -> random.Random:
    """A generator of its own for (seed, name)."""
    return random.Random(stable_hash(f"{seed}/{name}"))


def unique_token() -> str:
    """Never the same twice: for what must differ between processes, never for decisions."""
    return f"{random.SystemRandom().getrandbits(128):032x}"


def stable_hash(text: str) -> int:
    """An unsigned 64-bit hash that does not depend on PYTHONHASHSEED."""
    digest = hashlib.blake2b(text.encode(), digest_size=_HASH_BYTES).digest()
    return int.from_bytes(digest, "big")


def stable_digits(text: str) -> str:
    """32 hexadecimal digits that follow from a text: two `stable_hash`es."""
    first = hashlib.blake2b(text.encode(), digest_size=_HASH_BYTES)
    second = hashlib.blake2b(b"uid/" + text.encode(), digest_size=_HASH_BYTES)
    return first.hexdigest() + second.hexdigest()


def tie_index(seed: int, pod_uid: str, attempt: int, tied_count: int) -> int:
    """Which of ``tied_count`` equal nodes, in the order of (hash of name, name), a pod takes."""
    assert tied_count > 0
    return stable_hash(f"{seed}/{pod_uid}/{attempt}") % tied_count
