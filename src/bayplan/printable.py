"""Text of unknown origin on one line of a terminal.

Names and messages come from a cluster's objects, from plugins and from other programs. Some
fields of the API hold any characters (the claim of a pod's volume, messages of conditions). Line
breaks forge lines of a log; escape sequences move a terminal's cursor, set its title or hide text.
Such characters are written as Go's %q writes them: ``\\x1b``, ``\\n``, ``\\u202e``.
"""

import re
from typing import Final

#: C0 and C1 controls with DEL, line and paragraph separators, marks that turn the direction of
#: text (Unicode TR 9), and halves of surrogate pairs, which no stream can encode.
_UNPRINTABLE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_SHORT: Final = dict(zip("\a\b\f\n\r\t\v", ("\\" + c for c in "abfnrtv"), strict=True))


def printable(text: str) -> str:
    """``text`` with an escape sequence in place of each character that is not shown as itself."""
    return _UNPRINTABLE.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    if character in _SHORT:
        return _SHORT[character]
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}"
