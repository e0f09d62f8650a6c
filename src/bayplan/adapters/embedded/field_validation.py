"""Names and uids of objects: how an API server makes them, and their forms.

A real API server draws uids and the suffixes of generated names at random. Here both follow from
the object's key, so that the same input makes the same objects.
"""

import re
from collections.abc import Callable, Iterable

from bayplan.objects.keys import ObjectKey
from bayplan.rng import stable_digits, stable_hash

# ---- object names ---------------------------------------------------------------------------


#: The letters of generated suffixes: no vowels, so that they spell no words. Upstream: util/rand.
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX_LENGTH = 5
#: The characters of a generateName that a generated name begins with.
GENERATE_NAME_MAX = 63 - SUFFIX_LENGTH


def stable_uid(key: ObjectKey, ordinal: int) -> str:
    """The uid of the ``ordinal``-th object that has had this key; looks like a UUID."""
    digits = stable_digits(f"{key[0]}/{key[1]}/{key[2]}/{ordinal}")
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def generated_name(key: ObjectKey, prefix: str, number: int) -> str:
    """The name that a server makes of ``prefix``, the generateName of an object of this kind.

    ``number``: another number gives another name. Upstream: apiserver pkg/storage/names.
    """
    suffix = stable_suffix(f"{key.kind}/{key.namespace}/{prefix}/{number}")
    return prefix[:GENERATE_NAME_MAX] + suffix


def stable_suffix(text: str, length: int = SUFFIX_LENGTH) -> str:
    """The suffix of a generated name; equal texts get equal suffixes."""
    number = stable_hash(text)
    letters: list[str] = []
    for _ in range(length):
        number, index = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[index])
    return "".join(letters)


# ---- forms of names ------------------------------------------------------------------------


LABEL_KEY = "a label key such as app or example.com/app"
LABEL_VALUE = "a label value: at most 63 letters, digits, '-', '_', '.', ending in none of the last"
DNS_SUBDOMAIN = "a DNS name: lower case letters, digits, '-' and '.', at most 253"
DNS_LABEL = "a DNS label: lower case letters, digits and '-', at most 63"

LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_LABEL = re.compile(LABEL)

#: Whether a name is a DNS subdomain. Not a function of Python, because each pod passes here twice.
is_dns_subdomain: Callable[[str], object] = re.compile(
    rf"(?=.{{0,253}}\Z){LABEL}(\.{LABEL})*"
).fullmatch


def is_dns_label(name: str) -> bool:
    return len(name) <= 63 and _DNS_LABEL.fullmatch(name) is not None


def one_of(names: Iterable[str]) -> str:
    return "one of " + ", ".join(names)
