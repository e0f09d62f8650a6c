"""Plain values from YAML and JSON, as Kubernetes reads them."""

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from bayplan.yaml_documents import DEPTH_MAX, DocumentError, load_documents


def value_of(text: str | bytes) -> Any:
    [document] = load_documents(text, "some.yaml")
    return document.value


def refusal(text: str | bytes) -> DocumentError:
    with pytest.raises(DocumentError) as caught:
        load_documents(text, "some.yaml")
    return caught.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("yes", True, id="yes is a boolean"),
        pytest.param("Off", False, id="Off is a boolean"),
        pytest.param("y", "y", id="y is a letter, unlike in Kubernetes"),
        pytest.param("N", "N", id="N is a letter, unlike in Kubernetes"),
        pytest.param("yEs", "yEs", id="yEs is a string"),
        pytest.param("'yes'", "yes", id="a quoted yes is a string"),
        pytest.param("0777", 511, id="a leading zero means octal"),
        pytest.param("0o17", 15, id="0o means octal"),
        pytest.param("08", 8, id="a leading zero before a digit that is not octal"),
        pytest.param("0x1F", 31, id="hexadecimal"),
        pytest.param("-0b11", -3, id="binary with a sign"),
        pytest.param("1_000", 1000, id="underscores are left out"),
        pytest.param("1e3", 1000, id="an exponent needs no dot"),
        pytest.param("2.0", 2, id="a float without fraction is an integer"),
        pytest.param("+.5", 0.5, id="a float without integer part"),
        pytest.param("-.Inf", float("-inf"), id="infinity"),
        pytest.param("1e21", 1e21, id="a number that Go writes with an exponent stays a float"),
        pytest.param("12:30:45", "12:30:45", id="a time is a string"),
        pytest.param("190:20:30.15", "190:20:30.15", id="a sexagesimal float is a string"),
        pytest.param("2024-01-01", "2024-01-01", id="a date is a string"),
        pytest.param("2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z", id="a time stamp is a string"),
        pytest.param("500m", "500m", id="a quantity is a string"),
        pytest.param("1.2.3", "1.2.3", id="a version is a string"),
        pytest.param("=", "=", id="an equals sign is a string"),
        pytest.param("!!str 5", "5", id="a tag says string"),
        pytest.param("!!float 5", 5, id="a tag says float"),
        pytest.param("!!binary aGk=", "hi", id="a tag says base64"),
    ],
)
def test_scalars_are_read_as_by_kubernetes(text: str, value: Any) -> None:
    result = value_of(f"a: {text}")["a"]
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("on: 1", ["true"]),
        ("no: 1", ["false"]),
        ("80: x", ["80"]),
        ("1.5: x", ["1.5"]),
        ("'<<': x", ["<<"]),
    ],
)
def test_keys_are_strings(text: str, keys: list[str]) -> None:
    assert list(value_of(text)) == keys


@pytest.mark.parametrize("text", ["a: ~\nb: 1", "a:\nb: 1", "a: null\nb: 1", '{"a":null,"b":1}'])
def test_a_null_is_an_absent_field(text: str) -> None:
    assert value_of(text) == {"b": 1}


@pytest.mark.parametrize("text", ["a: ~\nb: {c: null}", '{"a":null,"b":{"c":null}}'])
def test_nulls_are_kept_on_request(text: str) -> None:
    [document] = load_documents(text, "some.yaml", keeps_nulls=True)
    assert document.value == {"a": None, "b": {"c": None}}


@pytest.mark.parametrize("text", ["- ~\n- 1", "[null, 1]"])
def test_a_null_in_a_list_keeps_its_place(text: str) -> None:
    assert value_of(text) == [None, 1]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("{<<: *b, q: 3}", {"p": 1, "q": 3}, id="own keys win"),
        pytest.param(
            "{q: 3, <<: *b}", {"p": 1, "q": 3}, id="own keys win before the merge key, too"
        ),
        pytest.param("{<<: [{p: 9}, *b]}", {"p": 9, "q": 2}, id="the first mapping wins"),
        pytest.param("{<<: *b, p: ~}", {"q": 2}, id="a null removes a merged key"),
        pytest.param("*b", {"p": 1, "q": 2}, id="an alias stands for its value"),
    ],
)
def test_anchors_and_merge_keys_are_supported(text: str, value: Any) -> None:
    assert value_of(f"b: &b {{p: 1, q: 2}}\na: {text}")["a"] == value


def test_documents_are_numbered_as_written_and_empty_ones_are_left_out() -> None:
    documents = load_documents("---\n# nothing\n---\na: 1\n---\n---\n\nb: 2\n", "some.yaml")
    assert [(d.value, d.source, d.index, d.line) for d in documents] == [
        ({"a": 1}, "some.yaml", 2, 4),
        ({"b": 2}, "some.yaml", 4, 8),
    ]


BACK_TO_BACK = '{"a": 1}\n{"b": 2}'


@pytest.mark.parametrize(
    ("text", "documents"),
    [
        pytest.param(BACK_TO_BACK, [(1, 1), (2, 2)], id="one per line"),
        pytest.param('{"a": 1}{"b": 2} [3]', [(1, 1), (2, 1), (3, 1)], id="without white space"),
        pytest.param('\r\n{"a":\r\n 1}\r\n\r\n{"b": 2}', [(1, 2), (2, 5)], id="CRLF"),
        pytest.param(f"a: 1\n---\n{BACK_TO_BACK}\n", [(1, 1), (2, 3), (3, 4)], id="after YAML"),
        pytest.param(f"{BACK_TO_BACK}\n---\nc: 3", [(1, 1), (2, 2), (3, 4)], id="before YAML"),
        pytest.param(
            f"# x\n---\n---\n{{a: 1}}\n--- {BACK_TO_BACK}\n---\n---\nz: 1",
            [(2, 4), (3, 5), (4, 6), (6, 9)],
            id="between YAML in flow style and empty documents",
        ),
        pytest.param('{"a": 1}\n\ufeff{"b": 2}', [(1, 1), (2, 2)], id="a mark in the middle"),
    ],
)
def test_documents_in_json_may_follow_one_another(
    text: str, documents: list[tuple[int, int]]
) -> None:
    assert [(d.index, d.line) for d in load_documents(text, "some.json")] == documents


@given(st.lists(st.tuples(st.booleans(), st.integers()), max_size=6), st.sampled_from(["", "\n"]))
def test_any_sequence_of_json_and_yaml_is_read_in_order(
    values: list[tuple[bool, int]], blank: str
) -> None:
    text, was_json = "", False
    for is_json, value in values:
        text += "" if is_json and was_json else "\n---\n"
        text += f'{{"a": {value}}}{blank}' if is_json else f"a: {value}\n"
        was_json = is_json
    documents = load_documents(text, "some.yaml")
    assert [d.value for d in documents] == [{"a": value} for _, value in values]
    assert [d.index for d in documents] == list(range(1, len(values) + 1))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_with_a_byte_order_mark_is_read_as_by_kubectl(encoding: str) -> None:
    mark = "" if encoding == "utf-16" else "\ufeff"
    assert value_of(f"{mark}a: ä\r\n".encode(encoding)) == {"a": "ä"}


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "\ufeff", "null"])
def test_an_empty_text_has_no_documents(text: str) -> None:
    assert load_documents(text, "some.yaml") == []


@pytest.mark.parametrize("text", [b"\xef\xbb\xbfa: \xc3\xa4", "\ufeffa: ä", '\ufeff{"a": "ä"}'])
def test_a_byte_order_mark_is_ignored(text: str | bytes) -> None:
    assert value_of(text) == {"a": "ä"}


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        pytest.param("a: 1\nb: 2\na: 3", 3, '"a" is given twice', id="a key twice"),
        pytest.param("on: 1\n'true': 2", 2, '"true" is given twice', id="twice once a string"),
        pytest.param('{"a": 1, "a": 2}', None, '"a" is given twice', id="a key twice in JSON"),
        pytest.param("a: [\n", 2, "flow node", id="a bracket left open"),
        pytest.param("a: 1\n---\nb: ]", 3, "document 2", id="in the second document"),
        pytest.param('{"a":\n"b" 1}', 2, "flow mapping", id="broken JSON"),
        pytest.param('{"a": 1}\n{"b": [', 2, "is it complete?", id="the second JSON is cut off"),
        pytest.param('{"a": 1}\n\n{"b" 1}', 3, "expecting ':'", id="the second JSON is broken"),
        pytest.param('{"a": 1}\n{"b": 1, "b": 2}', None, "twice", id="a key twice in the second"),
        pytest.param('{"a": 1}\nb: 2', 2, "<document start>", id="YAML right after JSON"),
        pytest.param('a: "b', 1, "is it complete?", id="the text is cut off"),
        pytest.param("a:\n\tb: 1", 2, "not with tabs", id="a tab"),
        pytest.param("a: 1".encode("utf-16-le"), None, "UTF-16", id="UTF-16 without a mark"),
        pytest.param(b"\xff\xfea", 1, "not UTF-16", id="half a character of UTF-16"),
        pytest.param(b"\x1f\x8b\x08", None, "compressed with gzip", id="a compressed file"),
        pytest.param("a: 1\n\x01", 2, "control characters", id="a control character"),
        pytest.param(b"a: 1\nb: \xff", 2, "UTF-8", id="bytes that are no text"),
        pytest.param('a: "\ud800"', 1, "UTF-8", id="half a character"),
        pytest.param("a: 1\nb: !Ref x", 2, "!Ref", id="an unsupported tag"),
        pytest.param("a: !Ref [x]", 1, "!Ref", id="an unsupported tag on a list"),
        pytest.param("a: !!set {x}", 1, "set", id="a type JSON does not have"),
        pytest.param(
            "a: !!int x", 1, '"x" is not of the type', id="a value that does not fit its tag"
        ),
        pytest.param("a: !!binary '%'", 1, '"%"', id="invalid base64"),
        pytest.param("a: " + "9" * 5000, 1, "999", id="5000 digits"),
        pytest.param("a: &x [*x]", 1, "&x", id="an alias within itself"),
        pytest.param("a: *x", 1, "&x", id="an alias of nothing"),
        pytest.param("? [a]\n: b", 1, "a key has to be a string", id="a list as a key"),
        pytest.param("~: b", 1, "a key has to be a string", id="null as a key"),
        pytest.param("a:\n  <<: 1", 2, "mapping", id="a merge of a number"),
    ],
)
def test_a_refusal_names_source_document_and_line(
    text: str | bytes, line: int | None, message: str
) -> None:
    problem = refusal(text)
    assert problem.line == line
    assert str(problem).startswith(f"some.yaml: document {problem.document}")
    assert message in str(problem)
    assert "\n" not in str(problem)


@pytest.mark.parametrize("bracket", ["[", "{a: "])
def test_nesting_is_limited(bracket: str) -> None:
    closing = {"[": "]", "{a: ": "}"}[bracket]
    assert value_of(bracket * DEPTH_MAX + "x" + closing * DEPTH_MAX)
    assert "deep" in refusal(bracket * 100_000).message


def test_nesting_through_aliases_is_limited() -> None:
    lines = ["k0: &a0 x"]
    lines += [f"k{i}: &a{i} [*a{i - 1}]" for i in range(1, DEPTH_MAX + 1)]
    assert "deep" in refusal("\n".join(lines)).message
    assert value_of("\n".join(lines[:-1]))


def bomb(level_count: int) -> str:
    """Each level repeats the level above ten times."""
    lines = ["k0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [
        f"k{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]"
        for level in range(1, level_count)
    ]
    return "\n".join(lines)


def test_a_short_text_that_aliases_expand_to_millions_of_values_is_refused() -> None:
    problem = refusal(bomb(9))
    assert problem.message == "the document contains excessive aliasing"
    assert problem.line is not None


@pytest.mark.parametrize(("scalar_count", "is_read"), [(822, False), (823, True)])
def test_aliases_may_contribute_99_percent_of_a_document(scalar_count: int, is_read: bool) -> None:
    # sigs.k8s.io/yaml refuses the first text and reads the second.
    def items(item: str, count: int) -> str:
        return f"[{', '.join([item] * count)}]"

    text = f"a: &a {items('x', 200)}\nb: {items('y', scalar_count)}\nc: {items('*a', 1000)}\n"
    if is_read:
        assert len(value_of(text)["c"]) == 1000
    else:
        assert "aliasing" in refusal(text).message


plain_values = st.recursive(
    st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["C"])),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["C"])), inner)
    ),
)


@given(plain_values)
def test_a_written_value_is_read_back(value: Any) -> None:
    assert value_of(json.dumps({"a": value})) == {"a": value}
    # With quotes, each text is read as a string.
    quoted = yaml.safe_dump({"a": value}, allow_unicode=True, default_style='"')
    assert value_of(quoted) == {"a": value}


@given(plain_values)
def test_json_read_as_yaml_gives_the_same_value(value: Any) -> None:
    text = json.dumps(value, ensure_ascii=False)
    # These characters are line breaks in YAML 1.1 but not in JSON.
    for line_break in "\x85\u2028\u2029":
        text = text.replace(line_break, json.dumps(line_break).strip('"'))
    assert value_of(f"# not JSON any more\n{text}") == value


def test_an_escaped_line_separator_is_read_as_a_character() -> None:
    assert value_of('# YAML\n{"a\\u2028b": "\\u0085"}') == {"a\u2028b": "\x85"}


class Members(tuple[tuple[str, Any], ...]):
    """The members of an object of JSON, in order; a key may be there twice."""

    __slots__ = ()


def written(value: Any, is_ascii: bool) -> str:
    """``is_ascii``: other characters are escaped."""
    if isinstance(value, Members):
        parts = (
            f"{json.dumps(key, ensure_ascii=is_ascii)} : {written(each, is_ascii)}"
            for key, each in value
        )
        return f"{{{', '.join(parts)}}}"
    if isinstance(value, list):
        return f"[{','.join(written(each, is_ascii) for each in value)}]"
    return json.dumps(value, ensure_ascii=is_ascii)


def has_a_key_twice(value: Any) -> bool:
    if isinstance(value, Members):
        keys = [key for key, _ in value]
        return len(set(keys)) < len(keys) or any(has_a_key_twice(each) for _, each in value)
    return isinstance(value, list) and any(map(has_a_key_twice, value))


def plain(value: Any) -> Any:
    """Dictionaries without nulls."""
    if isinstance(value, Members):
        return {key: plain(each) for key, each in value if each is not None}
    return [plain(each) for each in value] if isinstance(value, list) else value


#: Strings that look like the end of a key, and escapes.
TEXTS = st.text(alphabet='":\\ aé/\n', max_size=4)
JSON_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), TEXTS),
    lambda values: st.one_of(
        st.lists(values, max_size=3),
        st.lists(st.tuples(TEXTS, values), max_size=3).map(Members),
    ),
    max_leaves=8,
)


@given(st.lists(st.tuples(TEXTS, JSON_VALUES), max_size=3).map(Members), st.booleans())
def test_json_is_read_member_by_member_or_at_once_with_one_result(
    members: Members, is_ascii: bool
) -> None:
    text = written(members, is_ascii)
    if has_a_key_twice(members):
        assert "is given twice" in refusal(text).message
    else:
        assert value_of(text) == plain(members)
