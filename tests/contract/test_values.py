"""Numbers past 32 and 53 bits, texts that stores stumble over, and the job's state in SQL over all inputs."""

from __future__ import annotations

from itertools import product

import pytest

from contract.harness import ACCEPTED, ANN, Harness
from contract.plans import a
from outlast.domain.states import stored_job_state
from outlast.domain.work import Control
from outlast.store.programs import steps

EDGES = [2**31 - 2, 2**32 - 1, 2**53 - 2, 2**62]
TEXTS = [
    "\N{GRINNING FACE}\N{MAN}\u200d\N{WOMAN}\u200d\N{GIRL}",
    "e\u0301 and \u00e9",
    "\u200f\u05d0\u05d1",
    "'; drop table outlast_job; --",
    '"%s" %(tenant)s {outlast.job} :tenant ? $1 \\ \\u0000',
    "x" * 500,
    "\uffff\ufffd\U0010ffff",
]


@pytest.mark.parametrize("edge", EDGES)
def test_ids_fences_and_versions_past_an_edge(h: Harness, edge: int) -> None:
    """Claim, retry, question, answer and end, with the fence and the version counting over the edge."""
    job = h.admit(a("one", attempts=3), a("two", after="one"))
    h.sql("update {outlast.queue_entry} set fence = :edge", edge=edge)
    h.sql("update {outlast.job} set version = :edge", edge=edge)
    h.aside = frozenset({"D10 version"})
    claimed = h.take()
    assert claimed.ref.fence == edge + 1
    assert h.renew(claimed) == [ACCEPTED]
    assert h.run(steps.store_step(claimed.ref, "page", "1"))[0] is ACCEPTED
    assert h.fail(claimed).verdict is ACCEPTED
    h.advance(1_000)
    h.wake()
    claimed = h.take()
    assert claimed.ref.fence == edge + 2
    h.ask(claimed)
    assert h.question(job) == f"0.{edge + 2}"
    assert h.act(job, "answer", answer='"A4"') is Control.DONE
    claimed = h.take()
    assert h.run(steps.answer_of(claimed.ref, "which")) == '"A4"'
    assert h.finish(claimed).verdict is ACCEPTED
    assert [r.fence for r in h.recovery(job).attempts] == [edge + 1, edge + 2, edge + 3]
    assert h.view(job).version == edge + 3
    assert h.cancel(job, version=edge + 2) is Control.STALE_VERSION
    assert h.cancel(job, version=edge + 3) is Control.DONE


@pytest.mark.parametrize("edge", EDGES[:3])
def test_ids_a_lost_lease_past_an_edge(h: Harness, edge: int) -> None:
    job = h.admit(a("one", attempts=2**31 - 1))
    h.sql("update {outlast.queue_entry} set fence = :edge, spent = 2000000000", edge=edge)
    h.aside = frozenset({"C7 spent"})
    h.lose(h.take())
    assert h.sweep() == {"retried": 1}
    assert [(r["fence"], r["number"]) for r in h.rows("attempt", job)] == [(edge + 1, 2_000_000_001)]


def test_ids_the_largest_policy_is_stored(h: Harness) -> None:
    most = 10 * 365 * 86_400_000
    job = h.admit(a("one", priority=2**31 - 1, attempts=2**31 - 1, base_ms=most, cap_ms=most, window_ms=most, deadline_ms=most))
    claimed = h.take()
    assert claimed.deadline_at_ms == h.now + most
    h.hand_back(claimed)
    assert h.task(job).max_attempts == 2**31 - 1


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_text_of_any_kind_comes_back_as_it_was(h: Harness, text: str) -> None:
    """NUL and half surrogates never get here: the domain refuses them where they come in."""
    body = '{"text":"x"}'
    job = h.admit(a(text, attempts=1, item='"' + "\N{GRINNING FACE}" * 3 + '"'), label=text, owner=text, tenant=text, body=body)
    claimed = h.take(text)
    assert (claimed.label, claimed.owner, claimed.ref.tenant) == (text, text, text)
    assert h.renew(claimed, progress=text) == [ACCEPTED]
    assert h.run(steps.store_step(claimed.ref, text, '"x"')) == (ACCEPTED, '"x"')
    assert h.run(steps.step_names(claimed.ref)) == {text}
    assert h.fail(claimed, "no_ink", detail=text).verdict is ACCEPTED
    assert [r["detail"] for r in h.rows("attempt", job)] == [text]


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_text_of_any_kind_as_resource_and_actor(h: Harness, text: str) -> None:
    job, other = h.admit(a("one", usable=True)), h.admit(a("two"))
    held = h.take_all()
    h.finish(held["one"], resource=text)
    assert h.view(job).usable_ref == text
    h.cancel(other, actor=text)
    assert h.view(other).cancelled_by == text


def test_text_bodies_of_many_bytes_are_kept(h: Harness) -> None:
    body = '"' + "\N{GRINNING FACE}" * 60_000 + '"'
    job = h.admit(body=body)
    claimed = h.take()
    assert claimed.input == body
    h.finish(claimed, body)
    assert h.rows("output", job)[0]["body"] == body


def test_job_state_in_sql_is_the_domains_over_all_inputs(h: Harness) -> None:
    for cancelled, still_open, attention in product((None, 0, 1_700_000_000_000), (0, 1, 2, 1_000), (0, 1, 2)):
        (row,) = h.sql(
            "select {job_state:{bigint:cancelled}|{bigint:open}|{bigint:attention}} as state",
            cancelled=cancelled,
            open=still_open,
            attention=attention,
        )
        assert row["state"] == stored_job_state(cancelled=cancelled is not None, open=still_open, attention=attention)


def test_job_state_in_sql_on_a_jobs_own_row(h: Harness) -> None:
    jobs = [h.admit(a(f"t{n}", attempts=1)) for n in range(4)]
    held = h.take_all()
    h.finish(held["t0"])
    h.fail(held["t1"])
    h.cancel(jobs[2])
    rows = h.sql("select state, {job_state:cancelled_at|open|attention} as computed from {outlast.job}")
    assert sorted(r["state"] for r in rows) == ["cancelled", "completed", "needs_attention", "open"]
    assert all(r["state"] == r["computed"] for r in rows)
    assert h.view(jobs[3], ANN).state == "running"


def test_ids_have_no_narrow_column_and_burn_no_sequence(h: Harness) -> None:
    """A repeat, a poll or a conflict uses up no number of anything."""
    if h.backend.name == "sqlite":
        tables = h.sql("select name, strict from pragma_table_list where name like 'outlast_%'")
        assert len(tables) > 10
        assert all(table["strict"] for table in tables), "a column takes what it says, of 64 bits"
        assert h.sql("select name from sqlite_master where name = 'sqlite_sequence'") == []
        return
    columns = h.sql("select data_type from information_schema.columns where table_schema = 'outlast'")
    types = {row["data_type"] for row in columns}
    assert types == {"text", "uuid", "bigint", "boolean", "json", "timestamp with time zone"}
    assert h.sql("select 1 from pg_sequences where schemaname = 'outlast'") == []


def test_input_of_a_second_attempt_is_the_first_ones(h: Harness) -> None:
    h.admit(body='{"pages":[1,2]}')
    first = h.take()
    h.fail(first)
    h.advance(1_000)
    h.wake()
    assert h.take().input == first.input == '{"pages":[1,2]}'
