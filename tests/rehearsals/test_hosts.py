"""The rehearsal on several hosts, as network namespaces, where this machine lets them be made."""

from __future__ import annotations

import pytest

from rehearsals.hosts import CannotRehearse, rehearse_elsewhere

pytestmark = [pytest.mark.slow, pytest.mark.timeout(150)]


def test_who_is_cut_off_from_the_database_alone_stops_in_time_and_writes_nothing() -> None:
    try:
        said = rehearse_elsewhere()
    except CannotRehearse as error:
        pytest.skip(f"NOT REHEARSED ON SEVERAL HOSTS: network namespaces cannot be made here ({error})")
    assert "wrote nothing" in said
