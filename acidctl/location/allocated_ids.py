"""Whether files are newer than their metastore: ids on disk that it never allocated, after a backup was restored."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import NamedTuple

from acidctl.acid.listing import Listing
from acidctl.acid.names import AcidDirectory
from acidctl.acid.reasons import Code, Reason, reason
from acidctl.acid.unfinished import named_above
from acidctl.base.errors import AcidctlError, ConflictError, NotFoundError, UsageProblem
from acidctl.metastore.client import Metastore
from acidctl.metastore.errors import MetastoreError
from acidctl.metastore.tables import HiveTable
from acidctl.metastore.transactions import given_txn, given_write_id

_REPLICA = "repl.last.id"
"""A parameter of tables that replication writes."""

_WAIT, _MOST_WAITS = 1.0, 5
"""Seconds to wait before querying a metastore again that seems older than the files; and the most waits in a run."""


class Highest(NamedTuple):
    """The highest write id of a table, and the highest transaction id, that are known to have been allocated."""

    write_id: int = 0
    txn: int = 0

    def below(self, named: Iterable[AcidDirectory]) -> tuple[AcidDirectory, ...]:
        """Return the directories with ids above these."""
        return tuple(d for d in named if d.max_write_id > self.write_id or d.visibility_txn > self.txn)


class AllocatedIds:
    """The highest ids that a metastore has allocated, by table; a server is queried only if a name is above them."""

    def __init__(self, metastore: Metastore) -> None:
        self._metastore = metastore
        self._highest: dict[str, Highest] = {}
        self._waits = _MOST_WAITS

    def exceeded_by(
        self, listing: Listing, table: HiveTable, floor: tuple[int, int], again: Callable[[], Listing]
    ) -> tuple[Reason, ...]:
        """Return why a location holds ids that were never allocated; empty if it holds none.

        Args:
            listing: the location, listed before this call.
            table: its table: write ids are numbered by table.
            floor: a write id and a transaction id that are known to be allocated.
            again: requires that the table is the same, and lists the location's children again.
        """
        least = Highest(*floor)
        named = named_above(listing, *least)
        if not named:
            return ()
        try:
            if self._above(table, named, least) and (above := self._above_again(table, again, least)):
                return _reasons(above, self._highest[table.full_name], self._metastore.shown, table)
        except (NotFoundError, ConflictError, UsageProblem):  # it was dropped, renamed or created again
            return ()
        except MetastoreError as error:
            return (reason(Code.GIVEN_UNKNOWN, why=str(error)),)
        return ()

    def _above(self, table: HiveTable, named: Iterable[AcidDirectory], floor: Highest) -> tuple[AcidDirectory, ...]:
        highest = self._highest.get(table.full_name, floor)
        if above := highest.below(named):
            write_id, txn = highest
            if any(directory.max_write_id > write_id for directory in above):
                write_id = max(write_id, given_write_id(self._metastore, table.database, table.name))
            if any(directory.visibility_txn > txn for directory in above):
                txn = max(txn, given_txn(self._metastore))
            highest = self._highest[table.full_name] = Highest(write_id, txn)
        return highest.below(above)

    def _above_again(self, table: HiveTable, again: Callable[[], Listing], floor: Highest) -> tuple[AcidDirectory, ...]:
        """List again after a short wait and query every server, since one may lag behind another."""
        if self._waits:
            self._waits -= 1
            time.sleep(_WAIT)
        named = named_above(again(), *floor)
        above = self._above(table, named, floor)
        for server in self._metastore.each_server() if above and len(self._metastore.settings.addresses) != 1 else ():
            with suppress(AcidctlError):  # a server that does not answer is skipped
                highest = Highest(given_write_id(server, table.database, table.name), given_txn(server))
                self._highest[table.full_name] = Highest(*map(max, self._highest[table.full_name], highest))
            server.close()
        return self._highest.get(table.full_name, floor).below(above)


def _reasons(named: Iterable[AcidDirectory], highest: Highest, server: str, table: HiveTable) -> tuple[Reason, ...]:
    is_replica = bool(table.parameters.get(_REPLICA))
    reasons = []
    for what, least, ids in (
        ("write id", highest.write_id, {directory.name: directory.max_write_id for directory in named}),
        ("transaction", highest.txn, {directory.name: directory.visibility_txn for directory in named}),
    ):
        above = {name: number for name, number in ids.items() if number > least}
        if above:
            values = (("what", what), ("given", least), ("server", server), ("is_replica", is_replica))
            reasons.append(Reason(Code.ABOVE_GIVEN, tuple(above), tuple(sorted(set(above.values()))), values))
    return tuple(reasons)
