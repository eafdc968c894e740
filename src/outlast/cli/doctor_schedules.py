"""What `outlast doctor` says about schedules: those whose time has come and gone, and nobody has fired them."""

from __future__ import annotations

from outlast.cli.checks import Check
from outlast.client._sync import SyncClient
from outlast.domain.schedules import ON_TIME_MS
from outlast.store.programs import schedules

_MOST = 1_000
_NAMED = 3


def checks_of(client: SyncClient) -> list[Check]:
    """Nothing where there is none to wait for."""
    rows, next_in_ms = client.store.run_sync(schedules.due(None, _MOST))
    late = [row for row in rows if row.now_ms - row.next_ms > ON_TIME_MS]
    if not late:
        return [] if next_in_ms is None and not rows else [Check("overdue schedules", 0)]
    named = ", ".join(f"{row.key.name} ({row.definition.kind}@{row.definition.schema_version})" for row in late[:_NAMED])
    more = " and others" if len(late) > _NAMED else ""
    advice = (
        f"No worker has fired {named}{more}: none runs that knows their kinds in this version, their zones, or has the extra "
        "outlast[schedules]. Start one that does, or pause or remove them. What is made up for then is theirs to say (catch-up)."
    )
    return [Check("overdue schedules", len(late), "action", advice)]
