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


def quoted(text: str) -> str:
    """``text`` as Go's %q writes it, between double quotes (strconv.Quote)."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return f'"{"".join(map(_quoted_character, text))}"'


def _quoted_character(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if character.isprintable():
        return character
    return _escape(character)


def _escaped(match: re.Match[str]) -> str:
    return _escape(match[0])


def _escape(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def path_argument(path: str) -> str:
    """A path as a word of a command that is no option."""
    return f"./{path}" if path.startswith("-") and path != "-" else path
