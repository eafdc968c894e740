"""The strict JSON boundary: what is refused, where, and that what goes in comes back."""

from __future__ import annotations

import enum
import json
import math
from collections import OrderedDict
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlast.domain.errors import Invalid
from outlast.domain.payload import (
    INT64_MAX,
    INT64_MIN,
    MAX_DEPTH,
    MAX_NODES,
    canonical,
    check_code,
    check_key,
    check_text,
    clean,
    dump,
    parse,
)
from outlast.domain.refusal import pointer

LIMIT = 262_144
BIG = 64 * 1024 * 1024
unhurried = settings(deadline=None, max_examples=100)

storable_text = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=20)
numbers = st.integers(INT64_MIN, INT64_MAX) | st.floats(allow_nan=False, allow_infinity=False)
plain_values = st.recursive(
    st.none() | st.booleans() | numbers | storable_text,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(storable_text, inner, max_size=5),
    max_leaves=12,
)


def refused(text: str | bytes, *, limit: int = LIMIT) -> Invalid:
    with pytest.raises(Invalid) as caught:
        parse(text, limit=limit)
    assert caught.value.code == "invalid"
    assert caught.value.__context__ is None, "the parser's own error holds the text"
    return caught.value


def not_dumped(value: object, *, limit: int = LIMIT) -> Invalid:
    with pytest.raises(Invalid) as caught:
        dump(value, limit=limit, what="result", code="result_invalid")
    assert caught.value.code == "result_invalid"
    assert caught.value.__context__ is None
    return caught.value


def identical(left: object, right: object) -> bool:
    """Equal and of equal types all the way down; tells -0.0 from 0.0 and 1 from 1.0, which == does not."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict) and isinstance(right, dict):
        return list(left) == list(right) and all(identical(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(identical, left, right))
    return repr(left) == repr(right)


class TestParse:
    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("null", None),
            (" true\n", True),
            ("-0", 0),
            ("1", 1),
            ("1.0", 1.0),
            ("-0.0", -0.0),
            ("1e5", 100000.0),
            (str(INT64_MIN), INT64_MIN),
            (str(INT64_MAX), INT64_MAX),
            ("1.7976931348623157e308", 1.7976931348623157e308),
            ("1e-999", 0.0),
            ('"\\ud83d\\ude00"', "\U0001f600"),
            ('"\\\\u0000 \\\\ud800"', "\\u0000 \\ud800"),
            ('"\\u0001\\t"', "\x01\t"),
            ("[]", []),
            ('{"a":{"b":[1,"x",null]},"c":"d"}', {"a": {"b": [1, "x", None]}, "c": "d"}),
        ],
    )
    def test_reads_strict_json_with_its_types(self, text: str, value: object) -> None:
        assert identical(parse(text, limit=LIMIT), value)
        assert identical(parse(text.encode(), limit=LIMIT), value)

    @pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1" * 400 + ".0"])
    def test_refuses_what_no_float_is(self, text: str) -> None:
        error = refused('{"a": [0, ' + text + "]}")
        assert error.pointers == ("/a/1",)
        assert error.message == ("The input at /a/1 is NaN or infinite, or a number too large for a 64 bit float; send null or a string.")

    @pytest.mark.parametrize("text", [str(2**63), str(-(2**63) - 1), "9" * 5000, "-" + "9" * 100_000, "1" * 400])
    def test_refuses_whole_numbers_outside_64_bit(self, text: str) -> None:
        error = refused('{"n":' + text + "}")
        assert error.pointers == ("/n",)
        assert error.message == "The input at /n is a whole number outside 64 bit; send it as a string."

    @pytest.mark.parametrize(
        ("text", "place"),
        [
            ('{"a":1,"a":1}', "/a"),
            ('[{"b":0},{"a":{"x":1,"y":2,"x":3}}]', "/1/a/x"),
            ('{"\\u0061":1,"a":2}', "/a"),
            ('{"":1,"":2}', "/"),
        ],
    )
    def test_refuses_a_key_twice(self, text: str, place: str) -> None:
        error = refused(text)
        assert error.pointers == (place,)
        assert error.message == f"The input at {place} gives a key twice; send each key once."

    @pytest.mark.parametrize("bad", ["\\u0000", "\\ud800", "\\uDFFF", "\\ude00\\ud83d", "a\\uD83Db"])
    def test_refuses_nul_and_half_pairs_in_strings_and_keys(self, bad: str) -> None:
        error = refused('{"a":["","' + bad + '"]}')
        assert error.pointers == ("/a/1",)
        assert error.message == "The input at /a/1 has a NUL character or half a surrogate pair; remove it."
        error = refused('{"a":{"' + bad + '":1}}')
        assert error.pointers == ("/a",)
        assert "has a key with a NUL character or half a surrogate pair" in error.message
        assert refused(f'"{bad}"').pointers == ("",)

    def test_refuses_a_raw_half_pair(self) -> None:
        assert refused('{"a":"\ud800"}').pointers == ("/a",)
        assert refused('"\udfff"').pointers == ("",)

    def test_refuses_a_raw_nul(self) -> None:
        assert refused('{"a":"\x00"}').message == "The input is not JSON at line 1, column 7; correct it there."

    @pytest.mark.parametrize(
        "text",
        [
            "",
            " ",
            "nul",
            "{",
            "[1,]",
            '{"a":1,}',
            "{'a':1}",
            "{a:1}",
            "[1 2]",
            "+1",
            ".5",
            "\uff11",  # a digit one that is not ASCII
            '"a',
            '"\\x"',
            '"\\u12g4"',
            '"\n"',
            "//c\n1",
            "undefined",
            "{1:2}",
            "\u00a01",
            '"\\"\\"',
            "\\",
        ],
    )
    def test_refuses_what_is_not_json(self, text: str) -> None:
        error = refused(text)
        assert "is not JSON at line" in error.message
        assert error.pointers == ()

    @pytest.mark.parametrize("text", ["1 2", "{}{}", "[]]", "null,", '"a"b', "1\x00", "01", "1.", "0x10"])
    def test_refuses_trailing_garbage(self, text: str) -> None:
        assert "goes on after its end at line 1" in refused(text).message

    def test_says_line_and_column(self) -> None:
        assert refused('{"a": 1,\n "b": oops}').message == "The input is not JSON at line 2, column 7; correct it there."

    @pytest.mark.parametrize(
        ("data", "at"),
        [
            (b'"\xc3\x28"', 1),
            (b'"\xc0\xaf"', 1),
            (b'"\xed\xa0\x80"', 1),
            (b'"\xf5\x80\x80\x80"', 1),
            (b"\xff\xfe1\x00", 0),
            (b'"a\xe2\x82', 2),
        ],
    )
    def test_refuses_bytes_that_are_not_utf8(self, data: bytes, at: int) -> None:
        assert refused(data).message == f"The input is not UTF-8 at byte {at}; send it as UTF-8."

    def test_refuses_other_encodings_and_a_byte_order_mark(self) -> None:
        refused('{"a":1}'.encode("utf-16-le"))
        refused('{"a":1}'.encode("utf-32-be"))
        assert "begins with a byte order mark" in refused(b"\xef\xbb\xbf1").message
        assert "begins with a byte order mark" in refused("\ufeff1").message

    def test_measures_bytes_before_reading(self) -> None:
        assert parse('"äö"', limit=6) == "äö"
        for text in ('"äö"', '"äö"'.encode()):
            error = refused(text, limit=5)
            assert error.message.startswith("The input is larger than 5 bytes")
            assert error.pointers == ("",)
        assert "larger than" in refused(b"\xff" * 6, limit=5).message
        assert "larger than" in refused("\ud800" * 3, limit=5).message
        assert parse("12345", limit=5) == 12345
        assert "larger than" in refused("123456", limit=5).message

    @pytest.mark.parametrize(
        ("left", "right", "levels"),
        [("[", "]", 32), ('{"a":', "}", 32), ('[{"a":', "}]", 16), ('["x",', "]", 32), ('{"[":', "}", 32), ("[ \n", " ]", 32)],
    )
    def test_allows_32_levels_and_no_more(self, left: str, right: str, levels: int) -> None:
        deepest = left * levels + "0" + right * levels
        parse(deepest, limit=LIMIT)
        assert refused("[" + deepest + "]").message == "The input is nested deeper than 32 levels; flatten it."

    @pytest.mark.parametrize("depth", [33, 500, 5_000, 100_000])
    def test_refuses_depth_without_recursion(self, depth: int) -> None:
        for text in ("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth, "[" * depth):
            error = refused(text, limit=BIG)
            assert "nested deeper than 32 levels" in error.message or "members and items" in error.message

    def test_counts_no_brackets_in_strings(self) -> None:
        text = '["' + "[{" * 60_000 + '", "\\\\", "\\"[[", "' + "," * 120_000 + '"]'
        value = parse(text, limit=BIG)
        assert isinstance(value, list)
        assert value[1:3] == ["\\", '"[[']

    def test_depth_is_counted_behind_escaped_quotes_and_backslashes(self) -> None:
        deep = "[" * 33 + "]" * 33
        for before in ('"\\""', '"\\\\"', '"\\\\\\""', '"\\\\\\\\"', '"["'):
            assert "nested deeper" in refused(f"[{before},{deep}]").message

    def test_siblings_do_not_add_to_the_depth(self) -> None:
        assert len(parse("[" + ",".join(["[[]]"] * 1000) + "]", limit=LIMIT)) == 1000  # type: ignore[arg-type]

    def test_limits_the_number_of_values(self) -> None:
        for item in ("0", "[]", "{}", '""'):
            parse("[" + ",".join([item] * (MAX_NODES // 2)) + "]", limit=BIG)
        parse("[" + ",".join(["0"] * MAX_NODES) + "]", limit=BIG)
        assert "more than 100000 members" in refused("[" + ",".join(["0"] * (MAX_NODES + 1)) + "]", limit=BIG).message
        many = "{" + ",".join(f'"{no}":0' for no in range(MAX_NODES + 1)) + "}"
        assert "more than 100000 members" in refused(many, limit=BIG).message

    def test_never_repeats_a_value(self) -> None:
        for text in ('{"a": 1e999, "s": "hunter2"}', '["hunter2", hunter2]', '{"hunter2', '"hunter2" hunter2', '["hunter2\\u0000"]'):
            error = refused(text)
            assert "hunter2" not in str(error)
            assert "hunter2" not in repr(error.__cause__)

    def test_names_what_was_read(self) -> None:
        with pytest.raises(Invalid, match=r"^The answer is not JSON"):
            parse("", limit=LIMIT, what="answer")

    @unhurried
    @given(plain_values)
    def test_reads_what_other_json_writers_make(self, value: object) -> None:
        for ascii_only in (True, False):
            assert identical(parse(json.dumps(value, ensure_ascii=ascii_only), limit=BIG), value)

    @unhurried
    @given(st.text(st.sampled_from('[]{}",:\\u0d8tn 1-.eE\ud800\x00é'), max_size=30))
    def test_any_text_is_read_or_refused_and_nothing_else(self, text: str) -> None:
        try:
            value = parse(text, limit=LIMIT)
        except Invalid:
            return
        assert identical(parse(dump(value, limit=LIMIT), limit=LIMIT), value)

    @unhurried
    @given(st.binary(max_size=30))
    def test_any_bytes_are_read_or_refused_and_nothing_else(self, data: bytes) -> None:
        try:
            parse(data, limit=LIMIT)
        except Invalid:
            return
        json.loads(data.decode())


class _Color(enum.StrEnum):
    RED = "red"


class _Number(enum.IntEnum):
    ONE = 1


class _Text(str):
    __slots__ = ()


class TestDump:
    @unhurried
    @given(plain_values)
    def test_what_it_accepts_parse_reads_back_with_the_same_limit(self, value: object) -> None:
        text = dump(value, limit=BIG)
        assert identical(parse(text, limit=len(text.encode())), value)

    def test_is_compact_and_keeps_the_order_of_keys(self) -> None:
        assert dump({"b": [1, 2.5, "ä"], "a": None}, limit=LIMIT) == '{"b":[1,2.5,"ä"],"a":null}'

    def test_keeps_the_sign_of_zero_everywhere(self) -> None:
        assert dump(-0.0, limit=LIMIT) == canonical(-0.0) == "-0.0"
        assert math.copysign(1, parse("-0.0", limit=LIMIT)) == -1  # type: ignore[arg-type]

    @pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
    def test_refuses_what_json_has_no_number_for(self, value: float) -> None:
        error = not_dumped({"a": [0, value]})
        assert error.pointers == ("/a/1",)
        assert "is NaN or infinite" in error.message

    @pytest.mark.parametrize("value", [INT64_MAX + 1, INT64_MIN - 1, 10**400, -(10**4000)])
    def test_refuses_whole_numbers_outside_64_bit(self, value: int) -> None:
        error = not_dumped([value])
        assert error.pointers == ("/0",)
        assert "whole number outside 64 bit" in error.message

    def test_allows_the_ends_of_64_bit(self) -> None:
        assert (INT64_MIN, INT64_MAX) == (-9_223_372_036_854_775_808, 9_223_372_036_854_775_807)
        assert dump([INT64_MIN, INT64_MAX], limit=LIMIT) == f"[{INT64_MIN},{INT64_MAX}]"

    @pytest.mark.parametrize("bad", ["\x00", "a\ud800", "\udfffb"])
    def test_refuses_nul_and_half_pairs_in_strings_and_keys(self, bad: str) -> None:
        assert not_dumped(bad).pointers == ("",)
        assert not_dumped({"a": [bad]}).pointers == ("/a/0",)
        error = not_dumped({"a": {"x": 1, bad: 1}})
        assert error.pointers == ("/a",)
        assert "has a key with a NUL character" in error.message

    def test_allows_what_only_looks_like_nul(self) -> None:
        for text in ("\\u0000", "\\ud800", "\U0001f600", "\x01"):
            assert parse(dump([text], limit=LIMIT), limit=LIMIT) == [text]

    @pytest.mark.parametrize(
        ("value", "name"),
        [
            (datetime(2026, 1, 1, tzinfo=UTC), "a datetime"),
            (Decimal(1), "a Decimal"),
            ((1, 2), "a tuple"),
            ({1}, "a set"),
            (b"x", "a bytes"),
            (_Color.RED, "a _Color"),
            (_Number.ONE, "a _Number"),
            (_Text("x"), "a _Text"),
            (OrderedDict(), "an OrderedDict"),
            (object(), "an object"),
            (1j, "a complex"),
        ],
    )
    def test_refuses_other_types_by_name(self, value: object, name: str) -> None:
        error = not_dumped({"a": value})
        assert error.pointers == ("/a",)
        assert error.message == f"The result at /a is {name}, which is not a JSON value."

    def test_adds_advice_about_types_only(self) -> None:
        with pytest.raises(Invalid, match=r"is a tuple, which is not a JSON value; annotate it\.$"):
            dump((), limit=LIMIT, what="result", advice="annotate it")
        with pytest.raises(Invalid, match=r"NaN") as caught:
            dump(math.nan, limit=LIMIT, what="result", advice="annotate it")
        assert "annotate" not in caught.value.message

    @pytest.mark.parametrize(("key", "name"), [(1, "an int"), (None, "a NoneType"), ((), "a tuple"), (_Text("a"), "a _Text")])
    def test_refuses_keys_that_are_not_text(self, key: object, name: str) -> None:
        error = not_dumped([{"x": {key: 1}}])
        assert error.pointers == ("/0/x",)
        assert error.message == f"The result at /0/x has {name} as a key; keys must be text."

    def test_allows_32_levels_and_no_more(self) -> None:
        value: object = 1
        for level in range(MAX_DEPTH):
            value = [value] if level % 2 else {"a": value}
        assert parse(dump(value, limit=LIMIT), limit=LIMIT) == value
        error = not_dumped([value])
        assert "nested deeper than 32 levels" in error.message
        assert error.pointers[0].startswith("/0/0/a/0/a/")

    def test_refuses_depth_without_recursion(self) -> None:
        value: list[object] = []
        for _ in range(100_000):
            value = [value]
        assert "nested deeper than 32 levels" in not_dumped(value).message

    def test_refuses_what_contains_itself(self) -> None:
        inner: list[object] = [1]
        inner.append(inner)
        error = not_dumped({"x": [inner]})
        assert error.message == "The result at /x/0 contains itself."
        assert error.pointers == ("/x/0",)
        ring: dict[str, object] = {}
        ring["a"] = [ring]
        assert not_dumped(ring).message == "The result contains itself."
        ring["a"] = [{"b": ring}]
        assert "contains itself" in not_dumped(ring).message

    def test_measures_bytes_of_the_text(self) -> None:
        assert dump("äö", limit=6) == '"äö"'
        error = not_dumped("äö", limit=5)
        assert error.message.startswith("The result is larger than 5 bytes")
        assert error.pointers == ("",)
        assert dump({"a": [1]}, limit=9) == '{"a":[1]}'
        assert "larger than 8 bytes" in not_dumped({"a": [1]}, limit=8).message
        assert "larger than" in not_dumped("\x01" * 10, limit=20).message  # six characters each

    def test_shared_parts_cannot_multiply(self) -> None:
        value: list[object] = [1]
        for _ in range(30):
            value = [value, value]
        assert "more than 100000 members" in not_dumped(value, limit=BIG).message
        assert "larger than" in not_dumped([["x" * 1_000_000] * 50_000]).message
        assert "larger than" in not_dumped({"k" * 300_000: 1}).message

    def test_counts_values_as_parse_does(self) -> None:
        fitting: list[list[object]] = [[0] * MAX_NODES, [[]] * (MAX_NODES // 2), [{}] * (MAX_NODES // 2)]
        for value in fitting:
            assert parse(dump(value, limit=BIG), limit=BIG) == value
            value.append([])
            assert "more than 100000 members" in not_dumped(value, limit=BIG).message
            refused(json.dumps(value), limit=BIG)

    def test_never_repeats_a_value(self) -> None:
        for value in ({"a": object(), "s": "hunter2"}, ["hunter2\x00"], {"hunter2": math.nan}):
            assert "hunter2" not in not_dumped(value).message.replace("/hunter2", "")


class TestCanonical:
    def test_is_one_text_whatever_the_order_of_keys(self) -> None:
        assert canonical({"b": 1, "a": {"d": [], "c": 2}}) == canonical({"a": {"c": 2, "d": []}, "b": 1})
        assert canonical({"b": 1, "a": 2}) == '{"a":2,"b":1}'

    def test_tells_apart_what_json_tells_apart(self) -> None:
        texts = [canonical(value) for value in (1, 1.0, True, "1", [1], -0.0, 0.0, 0, None, {}, [])]
        assert len(set(texts)) == len(texts)

    @unhurried
    @given(plain_values)
    def test_reads_back_and_is_stable(self, value: object) -> None:
        text = canonical(value)
        assert parse(text, limit=BIG) == value
        assert canonical(parse(text, limit=BIG)) == text

    def test_refuses_what_dump_refuses(self) -> None:
        bad: list[object] = [math.nan, 2**63, "\x00", (), [["x" * 1_000_000] * 50_000]]
        for value in bad:
            with pytest.raises(Invalid):
                canonical(value)


class TestPointer:
    @pytest.mark.parametrize(
        ("path", "expected"),
        [
            ([], ""),
            (["a", 0, "b c"], "/a/0/b c"),
            (["a/b", "m~n", ""], "/a~1b/m~0n/"),
            (["~1"], "/~01"),
            (["ä"], "/ä"),
            (["a", "x" * 101, "b"], "/a"),
            (["a", "line\nbreak", "b"], "/a"),
            (["a", "\ud800"], "/a"),
            (["a", None], "/a"),
            (["x" * 100], "/" + "x" * 100),
        ],
    )
    def test_is_rfc_6901_and_safe_to_show(self, path: list[object], expected: str) -> None:
        assert pointer(path) == expected


class TestClean:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("plain\n\ttext ä \U0001f600", "plain\n\ttext ä \U0001f600"),
            ("a\x00b", "a\ufffdb"),
            ("\ud800x\udfff", "\ufffdx\ufffd"),
            ("\x1b[31mred\x07\x7f\x85", "\ufffd[31mred\ufffd\ufffd\ufffd"),
            ("a\r\nb\rc", "a\nb\ufffdc"),
            ("\u202eevil\u2066\u2028", "\ufffdevil\ufffd\ufffd"),
            ("", ""),
        ],
    )
    def test_makes_any_text_storable(self, text: str, expected: str) -> None:
        assert clean(text, limit=100) == expected

    def test_cuts_with_an_ellipsis_within_the_limit(self) -> None:
        assert clean("x" * 10, limit=10) == "x" * 10
        assert clean("x" * 11, limit=10) == "x" * 9 + "…"
        assert clean("xy", limit=1) == "…"
        assert clean("\r\n" * 10, limit=10) == "\n" * 10
        assert clean("\r\n" * 11, limit=10) == "\n" * 9 + "…"
        assert len(clean("x" * 5_000_000, limit=500)) == 500

    @unhurried
    @given(st.text(st.characters() | st.sampled_from("\x00\r\n\ud800\udfff\x1b"), max_size=40), st.integers(1, 30))
    def test_what_it_makes_can_be_stored_and_is_stable(self, text: str, limit: int) -> None:
        made = clean(text, limit=limit)
        assert len(made) <= limit
        assert parse(dump(made, limit=LIMIT), limit=LIMIT) == made
        assert clean(made, limit=limit) == made


class TestCheckText:
    @pytest.mark.parametrize("text", ["a", "Report für März", "名前", "x" * 20, " a ", "👩‍👧", "e\u0301"])
    def test_gives_back_text_for_one_line(self, text: str) -> None:
        assert check_text(text, what="label", limit=20) == text

    @pytest.mark.parametrize("text", ["", " ", "\t\n", "\u3000"])
    def test_refuses_blank(self, text: str) -> None:
        with pytest.raises(Invalid, match="The label is empty"):
            check_text(text, what="label", limit=20)

    @pytest.mark.parametrize("bad", ["\x00", "\n", "\t", "\r", "\x1b", "\x7f", "\x9f", "\ud800", "\u202e", "\u2029", "\u2068"])
    def test_refuses_controls(self, bad: str) -> None:
        with pytest.raises(Invalid, match="The label has control characters"):
            check_text(f"a{bad}b", what="label", limit=20)

    def test_refuses_too_long_without_repeating_it(self) -> None:
        with pytest.raises(Invalid) as caught:
            check_text("x" * 21, what="queue name", limit=20)
        assert caught.value.message == "The queue name is longer than 20 characters; shorten it."

    @pytest.mark.parametrize("value", [None, 1, b"a", ["a"]])
    def test_refuses_what_is_no_text(self, value: object) -> None:
        with pytest.raises(Invalid, match="The label must be text, not "):
            check_text(value, what="label", limit=20)  # type: ignore[arg-type]


class TestCheckKey:
    @pytest.mark.parametrize("key", ["a", "!~", "report-7/2026", "x" * 255])
    def test_gives_back_visible_ascii(self, key: str) -> None:
        assert check_key(key) == key

    @pytest.mark.parametrize("key", ["", "x" * 256, "a b", "a\n", "\x00", "ä", "\ud800", "\x7f", "\x1f"])
    def test_refuses_everything_else(self, key: str) -> None:
        with pytest.raises(Invalid, match="1 to 255 visible ASCII characters"):
            check_key(key)

    @pytest.mark.parametrize("key", [None, 1, b"a"])
    def test_refuses_what_is_no_text(self, key: object) -> None:
        with pytest.raises(Invalid, match="must be text"):
            check_key(key)  # type: ignore[arg-type]


class TestCheckCode:
    @pytest.mark.parametrize("code", ["a", "too_many_rejects", "a1_", "x" * 64])
    def test_accepts_stable_codes(self, code: str) -> None:
        assert check_code(code) is True

    @pytest.mark.parametrize("code", ["", "A", "1a", "_a", "a-b", "a b", "a\n", "ä", "x" * 65, None, 1, b"a"])
    def test_refuses_everything_else(self, code: object) -> None:
        assert check_code(code) is False
