"""Text of unknown origin on one line of a terminal."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.printable import printable, quoted


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("a/b → ä 文", "a/b → ä 文", id="plain text stays"),
        pytest.param("a\\n", "a\\n", id="a backslash stays"),
        pytest.param("x\x1b[2Jy", r"x\x1b[2Jy", id="an escape sequence"),
        pytest.param("x\nbayplan: all is well", r"x\nbayplan: all is well", id="a line break"),
        pytest.param("\t\r\x7f", r"\t\r\x7f", id="tab, return and delete"),
        pytest.param("\x9b31m", r"\u009b31m", id="an 8-bit control sequence"),
        pytest.param("a\u202eb\u2028", r"a\u202eb\u2028", id="direction marks and separators"),
        pytest.param("\ud800", r"\ud800", id="half a character"),
    ],
)
def test_terminal_control_sequences_are_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text())
def test_no_control_character_remains(text: str) -> None:
    shown = printable(text)
    assert not any(unicodedata.category(character) in ("Cc", "Cs", "Zl") for character in shown)
    assert len(shown.splitlines()) <= 1
    assert printable(shown) == shown


@pytest.mark.parametrize(
    ("text", "in_go"),
    [
        # As fmt.Sprintf("%q", text) prints them with Go 1.26.
        pytest.param("data-0 ä", '"data-0 ä"', id="plain text"),
        pytest.param('a"b\\c', r'"a\"b\\c"', id="quotes and backslashes"),
        pytest.param("x\x1b[2J\n\x7f", r'"x\x1b[2J\n\x7f"', id="control characters"),
        pytest.param("\u202e\u00a0", r'"\u202e\u00a0"', id="marks and spaces beyond ASCII"),
        pytest.param("\U000e0001", r'"\U000e0001"', id="a tag beyond the first plane"),
    ],
)
def test_a_name_is_quoted_as_by_go(text: str, in_go: str) -> None:
    assert quoted(text) == in_go
