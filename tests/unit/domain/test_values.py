"""Typed values in and out of stored JSON: what goes in comes back as its type, or is refused by the name of its type."""

from __future__ import annotations

import enum
import functools
import io
import math
import subprocess
import sys
import uuid
from collections import Counter, OrderedDict, deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from types import MappingProxyType
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, TypedDict, TypeVar
from zoneinfo import ZoneInfo

import msgspec
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlast.domain.errors import Invalid
from outlast.domain.values import MISSING, Hints, check_hint, decode, encode, hints

LIMIT = 1_000_000
SECRET = "hunter2"
T = TypeVar("T")
unhurried = settings(deadline=None, max_examples=20)


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Mode(enum.StrEnum):
    FAST = "fast"


class Half(enum.Enum):
    ONE = 0.5


@dataclass(frozen=True)
class Point:
    x: int
    y: float = 0.0


@dataclass
class Tree:
    name: str
    kids: list[Tree] = field(default_factory=list)


class Row(msgspec.Struct, frozen=True):
    sku: str
    price: Decimal
    tags: frozenset[str] = frozenset()


class Renamed(msgspec.Struct, rename="camel", omit_defaults=True):
    first_name: str
    last_name: str | msgspec.UnsetType = msgspec.UNSET


class Cat(msgspec.Struct, tag=True):
    lives: int


class Dog(msgspec.Struct, tag=True):
    name: str


class Pair(msgspec.Struct, array_like=True, tag="pair"):
    left: int
    right: list[int]


class Box(msgspec.Struct, Generic[T]):
    content: T


class Ping(TypedDict):
    host: str
    port: int


class Span(NamedTuple):
    start: int
    end: int = 0


class Steps(NamedTuple):
    number: int
    points: dict[str, Point] = {}  # noqa: RUF012 - never changed


class Model(pydantic.BaseModel):
    name: str = ""
    number: float = 0.0
    tags: set[str] = set()
    when: datetime | None = None
    raw: bytes = b""
    anything: Any = None
    other: int = pydantic.Field(0, alias="theOther")

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def shout(self) -> str:
        return self.name.upper()


class Open(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    inner: Model = Model()


@pydantic.dataclasses.dataclass
class Checked:
    count: int


@dataclass
class Mixed:
    model: Model
    raw: bytes


@dataclass
class Lost:
    where: Nowhere  # type: ignore[name-defined]  # noqa: F821


UserId = NewType("UserId", int)


def stored(value: object, hint: object, *, what: str = "result") -> str:
    return encode(value, limit=LIMIT, what=what, hint=hint)


def there_and_back(value: object, hint: object) -> object:
    return decode(stored(value, hint), hint, forbid_unknown=True)


def refused(value: object, *, hint: object = MISSING, plain: bool = False, limit: int = LIMIT) -> Invalid:
    with pytest.raises(Invalid) as caught:
        encode(value, limit=limit, what="result", hint=hint, plain=plain, code="result_invalid")
    assert caught.value.code == "result_invalid"
    assert caught.value.__context__ is None
    assert SECRET not in str(caught.value)
    return caught.value


def unfit(text: str, hint: object, *, forbid_unknown: bool = False) -> Invalid:
    with pytest.raises(Invalid) as caught:
        decode(text, hint, what="input", forbid_unknown=forbid_unknown)
    assert caught.value.__context__ is None
    assert SECRET not in str(caught.value)
    assert SECRET not in "".join(caught.value.pointers)
    return caught.value


texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=8)
whole = st.integers(-(2**63), 2**63 - 1)
real = st.floats(allow_nan=False, allow_infinity=False)
zones = st.integers(-23 * 60 - 59, 23 * 60 + 59).map(lambda minutes: timezone(timedelta(minutes=minutes)))
aware = st.datetimes(timezones=zones) | st.datetimes(timezones=st.just(UTC))
amounts = st.decimals(allow_nan=False, allow_infinity=False)
points = st.builds(Point, whole, real)
rows = st.builds(Row, texts, amounts, st.frozensets(texts, max_size=3))

TYPED: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (None, st.none()),
    (bool, st.booleans()),
    (int, whole),
    (float, real),
    (str, texts),
    (bytes, st.binary(max_size=20)),
    (bytearray, st.binary(max_size=20).map(bytearray)),
    (Decimal, amounts),
    (datetime, aware | st.datetimes()),
    (date, st.dates()),
    (time, st.times() | st.times(timezones=zones)),
    (timedelta, st.timedeltas()),
    (uuid.UUID, st.uuids()),
    (Color, st.sampled_from(Color)),
    (Level, st.sampled_from(Level)),
    (Mode, st.sampled_from(Mode)),
    (list[int], st.lists(whole, max_size=4)),
    (set[date], st.sets(st.dates(), max_size=4)),
    (frozenset[str], st.frozensets(texts, max_size=4)),
    (tuple[int, str], st.tuples(whole, texts)),
    (tuple[Decimal, ...], st.lists(amounts, max_size=4).map(tuple)),
    (dict[str, float], st.dictionaries(texts, real, max_size=4)),
    (dict[int, Point], st.dictionaries(whole, points, max_size=4)),
    (dict[float, int], st.dictionaries(real, whole, max_size=4)),
    (dict[uuid.UUID, int], st.dictionaries(st.uuids(), whole, max_size=4)),
    (dict[date, Color], st.dictionaries(st.dates(), st.sampled_from(Color), max_size=4)),
    (dict[Level, Mode], st.dictionaries(st.sampled_from(Level), st.just(Mode.FAST), max_size=2)),
    (Point, points),
    (Row | None, st.none() | rows),
    (list[Row], st.lists(rows, max_size=3)),
    (Cat | Dog, st.builds(Cat, whole) | st.builds(Dog, texts)),
    (Pair, st.builds(Pair, whole, st.lists(whole, max_size=3))),
    (Box[datetime], st.builds(Box, aware)),
    (Renamed, st.builds(Renamed, texts) | st.builds(Renamed, texts, texts)),
    (Ping, st.fixed_dictionaries({"host": texts, "port": whole})),
    (Span, st.builds(Span, whole, whole)),
    (Literal["a", 1], st.sampled_from(["a", 1])),
    (UserId, whole),
    (Annotated[int, msgspec.Meta(ge=0)], st.integers(0, 2**63 - 1)),
    (int | str | None, st.none() | whole | texts),
    (Sequence[int], st.lists(whole, max_size=3)),
    (Mapping[str, Point], st.dictionaries(texts, points, max_size=3)),
    (Checked, st.builds(Checked, st.integers(0, 9))),
    (
        Model,
        st.builds(Model, name=texts, number=real, tags=st.sets(texts, max_size=3), when=st.none() | aware, theOther=st.integers(0, 9)),
    ),
    (list[Model] | None, st.none() | st.lists(st.builds(Model, name=texts), max_size=3)),
    (dict[int, Model], st.dictionaries(st.integers(0, 9), st.builds(Model, name=texts), max_size=3)),
    (Mixed, st.builds(Mixed, st.builds(Model, name=texts), texts.map(str.encode))),
    (set[Annotated[int, pydantic.Field(ge=0)]], st.sets(st.integers(0, 9))),
]


@pytest.mark.parametrize(("hint", "values"), TYPED, ids=[str(hint).removeprefix("typing.") for hint, _ in TYPED])
@unhurried
@given(data=st.data())
def test_what_goes_in_comes_back_as_its_type(hint: Any, values: st.SearchStrategy[Any], data: st.DataObject) -> None:
    value = data.draw(values)
    check_hint(hint, what="result")
    back = there_and_back(value, hint)
    assert back == value
    assert type(back) is type(value)


class TestEncode:
    def test_writes_compact_json(self) -> None:
        assert stored(Point(1), Point) == '{"x":1,"y":0.0}'
        assert stored({"a": datetime(2026, 1, 2, tzinfo=UTC)}, dict[str, datetime]) == '{"a":"2026-01-02T00:00:00+00:00"}'
        assert stored(Renamed("Ada"), Renamed) == '{"firstName":"Ada"}'
        assert stored(Cat(9), Cat | Dog) == '{"type":"Cat","lives":9}'
        assert stored(Pair(1, [2]), Pair) == '["pair",1,[2]]'
        assert stored(b"\xff\x00", bytes) == '"/wA="'
        assert stored(timedelta(days=1, seconds=2), timedelta) == '"P1DT2S"'

    def test_does_without_a_hint(self) -> None:
        assert encode([Point(1), Model(tags={"b", "a"})], limit=LIMIT, what="item").startswith(
            '[{"x":1,"y":0.0},{"name":"","number":0.0,"tags":["a","b"]'
        )

    def test_writes_sets_in_one_order_so_that_fingerprints_hold(self) -> None:
        script = (
            "import pydantic\n"
            "from outlast.domain.values import encode\n"
            "class M(pydantic.BaseModel):\n    tags: dict[str, list[frozenset[str]]]\n"
            "names = {f'name{no}' for no in range(20)}\n"
            "model = M(tags={'a': [frozenset(names)]})\n"
            "print(encode([names, model], limit=9999, what='x'), encode(model, limit=9999, what='x', hint=M))\n"
        )
        made = {
            subprocess.run(
                [sys.executable, "-c", script],
                env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            for seed in ("1", "2")
        }
        assert len(made) == 1
        assert "name19" in made.pop()

    def test_takes_subclasses_as_what_they_are(self) -> None:
        class Text(str):
            __slots__ = ()

            def __str__(self) -> str:
                return "other"

        class Moment(datetime):
            def isoformat(self, sep: str = "T", timespec: str = "auto") -> str:
                return f"other{sep}{timespec}"

        assert stored([Text("own")], list[str]) == '["own"]'
        assert stored(Moment(2026, 1, 2, tzinfo=UTC), datetime) == '"2026-01-02T00:00:00+00:00"'
        assert stored({Text("k"): True}, dict[str, bool]) == '{"k":true}'
        assert stored(OrderedDict(a=1), dict[str, int]) == '{"a":1}'
        assert stored(Counter("aa"), dict[str, int]) == '{"a":2}'
        assert stored(MappingProxyType({"a": 1}), Mapping[str, int]) == '{"a":1}'
        assert stored({"a": 1}.keys(), set[str]) == '["a"]'
        assert stored(memoryview(b"a"), bytes) == '"YQ=="'

    @pytest.mark.parametrize(
        ("value", "name"),
        [
            (io.StringIO(SECRET), "a StringIO"),
            (object(), "an object"),
            (lambda: SECRET, "a function"),
            (Point, "a type"),
            (1j, "a complex"),
            (range(3), "a range"),
            (deque([1]), "a deque"),
            ((no for no in [1]), "a generator"),
            (ValueError(SECRET), "a ValueError"),
            (ZoneInfo("UTC"), "a ZoneInfo"),
            (msgspec.Raw(b"1"), "a Raw"),
        ],
    )
    def test_refuses_other_objects_by_the_name_of_their_type(self, value: object, name: str) -> None:
        error = refused({"a": [0, value]})
        assert error.message == f"The result at /a/1 is {name}, which cannot be stored as JSON."
        assert error.pointers == ("/a/1",)

    def test_shows_no_name_that_is_not_printable(self) -> None:
        assert refused([type("evil\n", (), {})()]).message == "The result at /0 is an object, which cannot be stored as JSON."
        assert len(refused(type("x" * 500, (), {})()).message) < 200

    def test_refuses_an_open_file(self) -> None:
        with open(__file__, encoding="utf-8") as file:  # noqa: PTH123 - the very thing that people return
            assert "is a TextIOWrapper" in refused(file).message

    def test_refuses_what_contains_itself(self) -> None:
        ring: list[object] = [1]
        ring.append(ring)
        assert refused({"a": ring}).message == "The result at /a contains itself."
        assert refused((ring,)).message == "The result at /0 contains itself."
        tree = Tree("root")
        tree.kids.append(tree)
        assert "contains itself" in refused(tree).message
        assert "ValueError" in refused(Model(anything=ring), hint=Model).message

    def test_refuses_depth_number_and_size(self) -> None:
        deep = Tree("leaf")
        for _ in range(40):
            deep = Tree("twig", [deep])
        assert "nested deeper than 32 levels" in refused(deep).message
        wide: tuple[object, ...] = (1,)
        for _ in range(30):
            wide = (wide, wide)
        assert "more than 100000 members and items" in refused(wide).message
        assert "larger than 10 bytes" in refused(("x" * 20,), limit=10).message
        assert "larger than 10 bytes" in refused(Model(), hint=Model, limit=10).message

    def test_allows_32_levels_of_models(self) -> None:
        tree = Tree("leaf")
        for _ in range(15):
            tree = Tree("twig", [tree])
        assert there_and_back(tree, Tree) == tree

    @pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, Decimal("NaN"), Decimal("sNaN"), Decimal("-Infinity")])
    def test_refuses_nan_and_infinities_wherever_they_stand(self, number: Any) -> None:
        assert "is NaN or infinite" in refused(number).message
        assert refused({"p": [Point(1, number)]}).pointers == ("/p/0/y",)

    @pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
    def test_refuses_nan_in_pydantic_models_which_pydantic_makes_null(self, number: float) -> None:
        assert refused(Model(number=number), hint=Model).pointers == ("/number",)
        assert refused([Model(anything={"a": (1, number)})], hint=list[Model]).pointers == ("/0/anything/a/1",)
        assert "is NaN or infinite" in refused({"m": Model(anything=number)}).message

    @pytest.mark.parametrize("bad", ["a\x00", "\ud800", "\udfff!"])
    def test_refuses_nul_and_half_pairs_wherever_they_stand(self, bad: str) -> None:
        for value in (bad, (bad,), Tree(bad), {Mode.FAST: {bad: 1}}, Row(bad, Decimal(1))):
            assert "half a surrogate pair" in refused(value).message
        assert refused(Model(anything=[bad]), hint=Model).pointers == ("/anything/0",)

    def test_refuses_whole_numbers_outside_64_bit(self) -> None:
        assert refused(Point(2**63)).pointers == ("/x",)
        assert refused(Model(anything=10**400), hint=Model).pointers == ("/anything",)

    @pytest.mark.parametrize("key", [None, True, (1,), frozenset({1}), Point(1), math.nan, math.inf])
    def test_refuses_keys_that_cannot_be_read_back(self, key: object) -> None:
        error = refused([{key: SECRET}])
        assert error.message.startswith("The result at /0 has a")
        assert error.message.endswith("as a key, which cannot be read back.")

    def test_refuses_two_keys_of_one_text(self) -> None:
        for keys in ({1: SECRET, "1": 2}, {"red": 1, Color.RED: 2}):
            assert refused((keys,)).message == "The result at /0 has two keys that are the same text in JSON."

    @pytest.mark.parametrize("zone", [timezone(timedelta(seconds=30)), ZoneInfo("Europe/Berlin")])
    def test_refuses_zones_that_would_be_lost(self, zone: tzinfo) -> None:
        old = datetime(1880, 1, 1, tzinfo=zone)
        assert "whole minutes; use UTC" in refused(old).message
        assert "whole minutes; use UTC" in refused({"t": time(1, tzinfo=zone)}).message
        berlin = datetime(2026, 7, 1, tzinfo=ZoneInfo("Europe/Berlin"))
        assert there_and_back(berlin, datetime) == berlin

    def test_refuses_enums_whose_value_is_neither_text_nor_whole(self) -> None:
        assert "is a Half, whose value is neither text nor a whole number" in refused([Half.ONE]).message

    def test_refuses_secrets_that_pydantic_would_write_as_asterisks(self) -> None:
        class Account(pydantic.BaseModel):
            password: pydantic.SecretStr

        error = refused(Account(password=pydantic.SecretStr(SECRET)), hint=Account)
        assert error.message.startswith("The result at /password is a SecretStr, which is not written")

    def test_refuses_what_pydantic_cannot_write(self) -> None:
        assert "holds a value of the type object" in refused(Model(anything=[object()]), hint=Model).message
        assert "is a Model, which cannot be written as JSON (UnicodeDecodeError)" in refused(Model(raw=b"\xff"), hint=Model).message

        class Failing(pydantic.BaseModel):
            x: int = 0

            @pydantic.field_serializer("x")
            def fail(self, value: int) -> int:
                raise KeyError(SECRET, value)

        assert "which cannot be written as JSON (Pydantic" in refused(Failing()).message

    @pytest.mark.parametrize("once", [io.StringIO(SECRET), (no for no in [1])], ids=["file", "generator"])
    def test_refuses_what_pydantic_would_use_up(self, once: object) -> None:
        error = refused(Model(anything=[once]), hint=Model)
        assert error.message.startswith("The result at /anything/0 is read by going through it once")

    def test_takes_what_a_serializer_of_the_host_makes(self) -> None:
        class Own(pydantic.BaseModel):
            number: float = math.inf
            pairs: dict[str, int] = {"a": 1}
            items: list[int] = [1, 2]

            @pydantic.field_serializer("number", when_used="json")
            def no_number(self, _value: float) -> str:
                return "much"

            @pydantic.field_serializer("pairs", when_used="json")
            def no_pairs(self, _value: dict[str, int]) -> dict[str, int]:
                return {}

            @pydantic.field_serializer("items", when_used="json")
            def first(self, value: list[int]) -> list[int]:
                return value[:1]

        assert stored(Own(), Own) == '{"number":"much","pairs":{},"items":[1]}'

    def test_lets_pydantic_write_plain_values_too_where_the_hint_is_its_own(self) -> None:
        hexadecimal = Annotated[int, pydantic.PlainSerializer(hex), pydantic.BeforeValidator(lambda text: int(text, 16))]
        assert stored(255, hexadecimal) == '"0xff"'
        assert stored([255], list[hexadecimal]) == '["0xff"]'
        assert there_and_back([255], list[hexadecimal]) == [255]

    def test_takes_sets_of_pydantic_models(self) -> None:
        class Frozen(pydantic.BaseModel):
            model_config = pydantic.ConfigDict(frozen=True)
            x: int

        value = {Frozen(x=1)}
        assert there_and_back(value, set[Frozen]) == value

    @pytest.mark.parametrize("value", [None, True, 1, 1.5, "a", [1, [None]], {"a": {"b": []}}])
    def test_plain_takes_plain_json_and_gives_it_back(self, value: object) -> None:
        for text in (encode(value, limit=LIMIT, what="result", plain=True), stored(value, Any), stored(value, object)):
            for hint in (MISSING, Any, object):
                assert decode(text, hint) == value

    @pytest.mark.parametrize(
        ("value", "name"),
        [
            ((1,), "a tuple"),
            ({1}, "a set"),
            (datetime(2026, 1, 1, tzinfo=UTC), "a datetime"),
            (Point(1), "a Point"),
            (Row("a", Decimal(1)), "a Row"),
            (Model(), "a Model"),
            (Mode.FAST, "a Mode"),
            (b"a", "a bytes"),
        ],
    )
    @pytest.mark.parametrize("how", [{"plain": True}, {"hint": Any}, {"hint": object}])
    def test_plain_refuses_what_would_come_back_as_another_type(self, value: object, name: str, how: dict[str, Any]) -> None:
        error = refused(["x", value], **how)
        assert error.message == f"The result at /1 is {name}, which is not a JSON value; annotate the function with what it returns."
        assert error.pointers == ("/1",)

    def test_a_changed_argument_does_not_change_what_was_stored(self) -> None:
        value = Tree("root", [Tree("kid")])
        text = stored(value, Tree)
        value.kids.clear()
        assert decode(text, Tree) == Tree("root", [Tree("kid")])


class TestDecode:
    @pytest.mark.parametrize(
        ("text", "hint", "places", "said"),
        [
            ('{"x":"hunter2"}', Point, ("/x",), "/x: expected `int`, got `str`"),
            ('{"x":"1"}', Point, ("/x",), "expected `int`, got `str`"),
            ('{"x":1.0}', Point, ("/x",), "expected `int`, got `float`"),
            ('{"x":true}', Point, ("/x",), "expected `int`, got `bool`"),
            ('{"y":1}', Point, ("/x",), "/x: missing"),
            ('[{"x":1},{}]', list[Point], ("/1/x",), "/1/x: missing"),
            ('"hunter2"', Point, ("",), "expected `object`, got `str`"),
            ("null", Point, ("",), "got `null`"),
            ('"hunter2"', Color, ("",), "is none of the allowed values"),
            ('{"a":["hunter2"]}', dict[str, list[Color]], ("",), "is none of the allowed values"),
            ('["hunter2"]', list[Literal["a"]], ("/0",), "is none of the allowed values"),
            ('{"hunter2":1}', dict[Color, int], ("",), "is none of the allowed values"),
            ('{"type":"hunter2"}', Cat | Dog, ("/type",), "is none of the allowed values"),
            ('"hunter2"', uuid.UUID, ("",), "invalid UUID"),
            ('["hunter2"]', list[Decimal], ("/0",), "invalid decimal string"),
            ('"hunter2"', datetime, ("",), "invalid RFC3339 encoded datetime"),
            ('"hunter2"', timedelta, ("",), "invalid ISO8601 duration"),
            ('"hunter2!"', bytes, ("",), "invalid base64 encoded string"),
            ("-1", Annotated[int, msgspec.Meta(ge=0)], ("",), "expected `int` >= 0"),
            ('"hunter2"', Annotated[str, msgspec.Meta(max_length=3)], ("",), "expected `str` of length <= 3"),
            ("1", int | None, None, None),
        ],
    )
    def test_says_where_and_why_but_no_value(self, text: str, hint: object, places: tuple[str, ...] | None, said: str | None) -> None:
        if places is None:
            assert decode(text, hint) == 1
            return
        error = unfit(text, hint)
        assert error.pointers == places
        assert error.message.startswith("The input does not fit ")
        assert said is not None
        assert said in error.message

    def test_says_nothing_that_a_check_of_the_host_says(self) -> None:
        @dataclass
        class Strict:
            x: str

            def __post_init__(self) -> None:
                if self.x == "value":
                    raise ValueError(f"{SECRET} - at `$.{SECRET}`")
                if self.x == "key":
                    raise KeyError(SECRET)

        class Late(msgspec.Struct):
            x: int

            def __post_init__(self) -> None:
                raise msgspec.ValidationError(SECRET)

        assert unfit('[{"x":"value"}]', list[Strict]).message.endswith(": its own check failed with ValueError.")
        assert unfit('{"x":"key"}', Strict).message.endswith(": its own check failed with KeyError.")
        assert unfit('{"x":1}', Late).message.endswith("Late: does not fit.")
        assert unfit('{"a":1}', msgspec.defstruct("Closed", [], forbid_unknown_fields=True)).message.endswith(
            "has a member that is not known."
        )

    @pytest.mark.parametrize(
        ("text", "hint", "places"),
        [
            ('{"x":1,"z":0}', Point, ("/z",)),
            ('{"x":1,"z":0,"a":0}', Point, ("/z", "/a")),
            ('[{"x":1,"z":0}]', list[Point], ("/0/z",)),
            ('[1,{"x":1,"z":0}]', tuple[int, Point], ("/1/z",)),
            ('[{"x":1,"z":0}]', tuple[Point, ...], ("/0/z",)),
            ('{"k":{"x":1,"z":0}}', dict[str, Point], ("/k/z",)),
            ('{"x":1,"z":0}', Point | None, ("/z",)),
            ('{"x":1,"z":0}', Annotated[Point, msgspec.Meta(title="t")], ("/z",)),
            ('[0,{"k":{"x":1,"z":0}}]', Steps, ("/1/k/z",)),
            ('{"x":1,"z":0}', int | list[Point] | Point, ("/z",)),
            ('{"name":"a","kids":[{"name":"b","kids":[],"z":1}]}', Tree, ("/kids/0/z",)),
            ('{"host":"a","port":1,"z":0}', Ping, ("/z",)),
            ('{"firstName":"a","first_name":"b"}', Renamed, ("/first_name",)),
            ('{"type":"Cat","lives":1,"name":"x"}', Cat | Dog, ("/name",)),
            ('{"type":"Dog","name":"x","lives":1}', list[int] | Cat | Dog, ("/lives",)),
            ('{"content":{"x":1,"z":0}}', Box[Point], ("/content/z",)),
            ('[1,{"x":1}]', Annotated[list[Any], msgspec.Meta(min_length=1)], None),
            ('{"content":{"any":1}}', Box[Any], None),
            ('{"type":"Cat","lives":1}', Cat | Dog, None),
            ('["pair",1,[2]]', Pair, None),
            ("[1,2]", Span, None),
        ],
    )
    def test_forbids_unknown_members_on_request(self, text: str, hint: object, places: tuple[str, ...] | None) -> None:
        decode(text, hint)
        if places is None:
            decode(text, hint, forbid_unknown=True)
            return
        error = unfit(text, hint, forbid_unknown=True)
        assert error.pointers == places
        assert error.message.count("not a known member") == len(places)

    @pytest.mark.parametrize(
        ("text", "hint", "places", "said"),
        [
            ('{"name":3}', Model, ("/name",), "/name: does not fit (string_type)"),
            (
                '{"number":"hunter2","tags":["a",{"hunter2":1}]}',
                Model,
                ("/number", "/tags/1"),
                "(float_parsing); /tags/1: does not fit (string_type)",
            ),
            ('[{},{"name":3}]', list[Model], ("/1/name",), "/1/name: "),
            ('"hunter2"', Model, ("",), "does not fit (model_type)"),
            ("{}", Checked, ("/count",), "/count: missing"),
            ('{"model":{}}', Mixed, ("/raw",), "/raw: missing"),
            ('{"a":{}}', dict[int, Model], ("/a",), "(int_parsing)"),
            ('["hunter2"]', Annotated[list[str], pydantic.Field(max_length=0)], ("",), "does not fit (too_long)"),
        ],
    )
    def test_says_where_and_why_of_pydantic(self, text: str, hint: object, places: tuple[str, ...], said: str) -> None:
        error = unfit(text, hint)
        assert error.pointers == places
        assert said in error.message

    def test_says_nothing_that_a_validator_of_the_host_says(self) -> None:
        class Guarded(pydantic.BaseModel):
            x: str

            @pydantic.field_validator("x")
            @classmethod
            def guard(cls, value: str) -> str:
                if value == "key":
                    raise KeyError(SECRET)
                if value == "custom":
                    raise pydantic_custom(f"{SECRET}!", SECRET)
                raise ValueError(SECRET)

        pydantic_custom = pydantic_core_custom_error()
        assert unfit('{"x":"value"}', Guarded).message.endswith("/x: does not fit (value_error).")
        assert unfit('{"x":"custom"}', Guarded).message.endswith("/x: does not fit.")
        assert unfit('{"x":"key"}', Guarded).message.endswith(": its own check failed with KeyError.")

    def test_names_at_most_ten_problems(self) -> None:
        error = unfit("[" + ",".join(['{"name":3}'] * 50) + "]", list[Model])
        assert len(error.pointers) == 10

    def test_forbids_members_unknown_to_pydantic_unless_a_model_decides_itself(self) -> None:
        text = '{"name":"a","extra":1}'
        assert decode(text, Model) == Model(name="a")
        assert unfit(text, Model, forbid_unknown=True).pointers == ("/extra",)
        assert unfit('{"model":{"extra":1},"raw":"","more":1}', Mixed, forbid_unknown=True).pointers == ("/model/extra", "/more")
        open_one = decode('{"extra":1}', Open, forbid_unknown=True)
        assert isinstance(open_one, Open)
        assert open_one.model_extra == {"extra": 1}

    @pytest.mark.parametrize(
        "text", ["", "{", '{"x":1,"x":1}', '{"x":NaN}', '{"x":1e999}', '{"x":"\\u0000"}', "[" * 100_000, "1 2", str(2**63)]
    )
    @pytest.mark.parametrize("hint", [Point, Model, Any, MISSING, list[int]])
    def test_a_row_edited_by_hand_is_refused_by_the_same_rules(self, text: str, hint: object) -> None:
        with pytest.raises(Invalid) as caught:
            decode(text, hint, what="input")
        assert caught.value.message.startswith("The input ")

    def test_types_that_cannot_be_hashed_are_read_too(self) -> None:
        hint = Annotated[Point, ["not hashable"]]
        assert there_and_back(Point(1), hint) == Point(1)
        pydantic_one = Annotated[Model, ["not hashable"]]
        assert there_and_back(Model(name="a"), pydantic_one) == Model(name="a")


def pydantic_core_custom_error() -> Callable[[str, str], Exception]:
    from pydantic_core import PydanticCustomError  # noqa: PLC0415 - comes with pydantic, is no dependency of its own

    return PydanticCustomError


class TestCheckHint:
    @pytest.mark.parametrize("hint", [MISSING, Any, object, None, int, list[Row], Cat | Dog, dict[str, Model] | None, Ping, T, Tree])
    def test_accepts_what_can_be_read_back(self, hint: object) -> None:
        check_hint(hint, what="result of shop.render")

    @pytest.mark.parametrize(
        ("hint", "said"),
        [
            (date | str, "more than one str-like type"),
            (Point | Row, "more than one dict-like type"),
            (io.StringIO, "JSON cannot be read as StringIO"),
            (list[dict[str, tuple[complex, ...]]], "JSON cannot be read as complex"),
            (Box[tuple[int, io.StringIO]], "JSON cannot be read as StringIO"),
            (Annotated[list[Callable[[], int]], msgspec.Meta(title="t")], "JSON cannot be read as"),
            (Half, "Enums must contain either all str or all int values"),
            ("Row", "which cannot be stored and read back"),
            (Lost, "name 'Nowhere' is not defined"),
            (list["Nowhere"], "which cannot be stored and read back"),  # type: ignore[name-defined]  # noqa: F821
            (msgspec.Raw, "JSON cannot be read as"),
            (dict[str, Model | Row], "Unable to generate pydantic-core schema"),
        ],
    )
    def test_refuses_at_registration_what_could_not_be_read_back(self, hint: object, said: str) -> None:
        with pytest.raises(Invalid) as caught:
            check_hint(hint, what="result of shop.render")
        assert caught.value.message.startswith("The result of shop.render has the type ")
        assert said in caught.value.message
        assert "\n" not in caught.value.message


class Completion(Generic[T]):
    """Stands in for the worker's."""


Completion.__module__ = "outlast.worker.context"


class Foreign(Generic[T]):
    """A class of the host that happens to have the name."""


Foreign.__name__ = "Completion"


async def completes(_ctx: object, _report: Point) -> Completion[list[Row]]:
    raise NotImplementedError


def completes_something() -> Completion:  # type: ignore[type-arg]
    raise NotImplementedError


def foreign() -> Foreign[int]:
    raise NotImplementedError


def handler(_ctx: Nowhere, report: Point, item: Annotated[int, msgspec.Meta(ge=0)], /, *rest: str, flag: bool = False) -> Row | None:  # type: ignore[name-defined]  # noqa: F821
    raise NotImplementedError


def unresolved() -> list[Nowhere]:  # type: ignore[name-defined]  # noqa: F821
    raise NotImplementedError


def waits(_key: str) -> Awaitable[Row]:
    raise NotImplementedError


def coroutine(_key: str) -> Coroutine[Any, Any, Row]:
    raise NotImplementedError


@functools.wraps(handler)
def wrapped(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError


class Service:
    def method(self, report: Point) -> Row:
        raise NotImplementedError

    def __call__(self, report: Point) -> Row:
        raise NotImplementedError


class TestHints:
    @pytest.mark.parametrize(
        ("fn", "returns"),
        [
            (handler, Row | None),
            (wrapped, Row | None),
            (functools.partial(handler, None), Row | None),
            (Service().method, Row),
            (Service(), Row),
            (waits, Row),
            (coroutine, Row),
            (Point, Point),
            (dict, dict),
            (lambda: 1, MISSING),
            (len, MISSING),
            (print, MISSING),
            (foreign, Foreign[int]),
        ],
    )
    def test_gives_what_the_function_says_it_returns(self, fn: Callable[..., Any], returns: object) -> None:
        said = hints(fn)
        assert said.returns == returns
        assert said.annotated == (returns is not MISSING)
        assert said.completion is False

    @pytest.mark.parametrize("fn", [handler, functools.partial(handler, None), wrapped])
    def test_names_the_function_and_no_wrapper_of_it(self, fn: Callable[..., Any]) -> None:
        assert hints(fn).name == f"{__name__}.handler"
        assert hints(Service()).name == f"{__name__}.Service"

    def test_none_is_an_annotation(self) -> None:
        def nothing() -> None:
            raise NotImplementedError

        assert hints(nothing).returns is type(None)
        assert hints(nothing).annotated
        assert not hints(nothing).plain

    @pytest.mark.parametrize(("annotation", "plain"), [(Any, True), (object, True), (None, False), (int, False), (dict[str, Any], False)])
    def test_plain_is_what_nothing_says_how_to_read_back(self, annotation: object, plain: bool) -> None:
        def fn() -> object:
            raise NotImplementedError

        fn.__annotations__["return"] = annotation
        assert hints(fn).plain is plain
        assert hints(lambda: 1).plain is True

    def test_gives_the_type_within_a_completion(self) -> None:
        said = hints(completes)
        assert (said.returns, said.completion) == (list[Row], True)
        assert said.name == f"{__name__}.completes"
        said = hints(completes_something)
        assert (said.returns, said.completion, said.plain) == (MISSING, True, True)

    def test_gives_positional_parameters_when_asked(self) -> None:
        said = hints(handler)
        assert said.parameter(1) is Point
        assert said.parameter(2) == Annotated[int, msgspec.Meta(ge=0)]
        assert said.parameter(3) is MISSING
        assert hints(Service().method).parameter(0) is Point
        assert hints(functools.partial(handler, None)).parameter(0) is Point
        assert hints(lambda x: x).parameter(0) is MISSING

    def test_names_the_function_whose_return_annotation_does_not_resolve(self) -> None:
        with pytest.raises(Invalid) as caught:
            hints(unresolved)
        assert f"the return value of {__name__}.unresolved cannot be resolved" in caught.value.message
        assert "Nowhere" in caught.value.message

    def test_a_parameter_that_does_not_resolve_hurts_only_who_asks_for_it(self) -> None:
        said = hints(handler)
        assert isinstance(said, Hints)
        with pytest.raises(Invalid, match="the parameter '_ctx' of "):
            said.parameter(0)


def test_pydantic_is_never_imported_for_those_who_do_not_use_it() -> None:
    script = (
        "import sys\n"
        "from dataclasses import dataclass\n"
        "from outlast.domain.values import decode, encode, hints\n"
        "@dataclass\nclass P:\n    x: int\n"
        "assert decode(encode(P(1), limit=99, what='x', hint=P), P, forbid_unknown=True) == P(1)\n"
        "assert not any(name.startswith('pydantic') for name in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], env={"PYTHONPATH": ":".join(sys.path)}, check=True)
