"""Random numbers. Only this module imports ``random``.

There are two kinds. Named streams serve faults and jitter: two streams of one seed are independent.
Ties between nodes are drawn by a hash of seed, pod and attempt, so that the same attempt draws the
same node, wherever and however its scores were computed.
"""

import hashlib
import random

_HASH_BYTES = 8

#: The type of a stream, so that annotations need not import ``random``.
Stream = random.Random


def stream(seed: int, name: str) -> random.Random:
    """A new generator for (seed, name); equal arguments give equal numbers."""
    return random.Random(stable_hash(f"{seed}/{name}"))


def unique_token() -> str:
    """A token that differs at every call and in every process; never for decisions."""
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
    """The index of the drawn node among ``tied_count`` tied nodes, in the order of (hash of name,
    name)."""
    assert tied_count > 0
    # As `stable_hash`, without a call in each attempt.
    text = f"{seed}/{pod_uid}/{attempt}".encode()
    digest = hashlib.blake2b(text, digest_size=_HASH_BYTES).digest()
    return int.from_bytes(digest, "big") % tied_count
