"""What a row of an outbox asks for, without any database."""

from __future__ import annotations

from typing import Any

import pytest

from outlast import Invalid, Principal, TargetRef, Unique
from outlast.domain.outbox import MAX_LONG, NUMBERS, WRITTEN, Mark, OutboxRow, asked, written


def row(size: int | None = 2, **values: Any) -> OutboxRow:
    found: dict[str, Any] = {"id": "one", "tenant": "acme", "owner": "ann", "kind": "order", "input": "{}"}
    return OutboxRow(Mark(1, 2), 0, size, {**dict.fromkeys(WRITTEN), **found, **values})


def test_what_was_written_is_what_is_read() -> None:
    owner = Principal("acme", "ann", roles=["b", "a"], claims={"x": "1", "y": "2"})
    columns = written(
        key="k",
        owner=owner,
        kept={"x": "1"},
        kind="order",
        version=3,
        input='{"n":1}',
        target=TargetRef("r", "v"),
        unique=Unique("u", "replace"),
        not_before_ms=1_700_000_000_123,
        correlation_id="c",
    )
    assert tuple(columns) == WRITTEN
    assert columns["roles"] == '["a","b"]'
    for as_stored in (columns, {name: value.encode() if isinstance(value, str) else value for name, value in columns.items()}):
        found = asked(OutboxRow(Mark(1, 2), 0, 7, as_stored), limit=100)
        assert (found.key, found.kind, found.version, found.input) == ("k", "order", 3, {"n": 1})
        assert (found.owner.tenant, found.owner.subject, found.owner.roles) == ("acme", "ann", {"a", "b"})
        assert dict(found.owner.claims) == {"x": "1"}
        assert (found.target, found.unique, found.correlation_id) == (TargetRef("r", "v"), Unique("u", "replace"), "c")
        assert found.not_before is not None
        assert round(found.not_before.timestamp() * 1000) == 1_700_000_000_123


def test_what_is_null_is_not_asked_for() -> None:
    found = asked(row(), limit=100)
    assert (found.version, found.target, found.unique, found.not_before, found.correlation_id) == (None, None, None, None, None)
    assert (found.owner.roles, dict(found.owner.claims)) == (frozenset(), {})
    bare = written(
        key="k",
        owner=Principal("a", "b"),
        kept={},
        kind="order",
        version=1,
        input="1",
        target=None,
        unique=None,
        not_before_ms=None,
        correlation_id=None,
    )
    assert [name for name, value in bare.items() if value is None] == [
        "roles",
        "claims",
        "target_ref",
        "target_version",
        "unique_key",
        "unique_policy",
        "not_before",
        "correlation_id",
    ]


@pytest.mark.parametrize("name", sorted(set(WRITTEN) - NUMBERS))
def test_no_text_may_be_another_type_or_empty_or_no_utf_8(name: str) -> None:
    codes = []
    for value in (5, b"\xff", ""):
        with pytest.raises(Invalid) as caught:
            asked(row(**{name: value}), limit=100)
        codes.append(caught.value.code)
        assert "\xff" not in caught.value.message
    assert codes == ["invalid_row", "undecodable", "invalid" if name == "input" else "invalid_row"]


@pytest.mark.parametrize("name", sorted(NUMBERS))
@pytest.mark.parametrize("value", ["1", 1.5, True, b"1"])
def test_a_number_is_a_whole_one(name: str, value: object) -> None:
    with pytest.raises(Invalid, match="whole number"):
        asked(row(**{name: value}), limit=100)


@pytest.mark.parametrize("name", ["id", "tenant", "owner", "kind", "input"])
def test_what_is_needed_may_not_be_null(name: str) -> None:
    with pytest.raises(Invalid) as caught:
        asked(row(**{name: None}), limit=100)
    assert caught.value.code == "invalid_row"


@pytest.mark.parametrize("name", ["claims", "roles"])
@pytest.mark.parametrize("value", ["5", "[1]", '{"a": 1}', "[", '"' + "a" * MAX_LONG + '"'])
def test_roles_and_claims_are_of_texts(name: str, value: str) -> None:
    with pytest.raises(Invalid) as caught:
        asked(row(**{name: value}), limit=100)
    assert caught.value.code == "invalid_row"


def test_an_input_that_is_too_large_was_not_read() -> None:
    with pytest.raises(Invalid) as caught:
        asked(row(size=101, input=None), limit=100)
    assert caught.value.code == "input_too_large"


@pytest.mark.parametrize(
    "values",
    [
        {"unique_policy": "reject"},
        {"target_version": "v"},
        {"not_before": 10**18},
        {"not_before": -(10**18)},
        {"unique_key": "a b", "unique_policy": "reject"},
    ],
)
def test_what_stands_alone_or_means_nothing_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(Invalid) as caught:
        asked(row(**values), limit=100)
    assert caught.value.code == "invalid_row"
