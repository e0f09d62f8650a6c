"""Numbers that look random and follow from a text: a run repeats itself, on any machine."""

import hashlib


def number(text: str) -> int:
    """An unsigned 64-bit number."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
