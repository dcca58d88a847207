"""Resolves the snapshot that a user chose, or the metastore's, to the lists of one location."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from acidctl.acid.assumed_commits import Assumed, Assumption, assume
from acidctl.acid.reasons import Code, Reason, reason
from acidctl.acid.writeids import ValidTxns, ValidWriteIds
from acidctl.base.deadline import Deadline
from acidctl.base.errors import AcidctlError, UsageProblem
from acidctl.location.arguments import HiveName
from acidctl.location.snapshot import EVERYTHING, GIVEN, DirectoryListing, SnapshotSource
from acidctl.location.snapshot_spec import SnapshotSpec

if TYPE_CHECKING:
    from acidctl.location.warehouse import Warehouse
    from acidctl.metastore.tables import HiveTable


@dataclass(frozen=True, slots=True)
class ResolvedSnapshot:
    """The lists that apply to one location.

    Attributes:
        assumed: the assumption that the lists were made from; None if they were given.
        note: a note for users about the origin of the lists; None if there is nothing to say.
        source: the origin of the lists.
    """

    write_ids: ValidWriteIds | None = None
    txns: ValidTxns | None = None
    assumed: Assumed | None = None
    note: Reason | None = None
    source: SnapshotSource = EVERYTHING


@dataclass(frozen=True, slots=True)
class SnapshotResolver:
    """Everything that can decide which write ids count.

    Attributes:
        spec: the snapshot that the user chose.
        warehouse: the metastore that decides if the user did not, and that resolves the names of tables.
    """

    spec: SnapshotSpec = field(default_factory=SnapshotSpec)
    warehouse: Warehouse | None = None

    @property
    def decides(self) -> bool:
        """Return whether a list, a metastore or an assumption decides which write ids count."""
        return self.spec.has_write_ids or self.spec.assumption is not None or self.warehouse is not None

    @property
    def asks_metastore(self) -> bool:
        """Return whether the metastore decides what counts, because the user did not."""
        return self.warehouse is not None and not self.spec.has_write_ids and self.spec.assumption is None

    def assuming(self, assumption: Assumption) -> SnapshotResolver:
        """Return a copy with an assumption that the user agreed to."""
        return replace(self, spec=replace(self.spec, assumption=assumption))

    def end_by(self, until: Deadline) -> None:
        """Limit every call to the metastore to the deadline of the run."""
        if self.warehouse:
            self.warehouse.metastore.until = until

    def opened(self) -> SnapshotResolver:
        """Read the transactions of the metastore now, so that directories listed from here on include them all."""
        if self.asks_metastore and self.warehouse and not self.warehouse.read_lock:
            _ = self.warehouse.transactions
        return self

    def refreshed(self, *, is_retry: bool = False) -> SnapshotResolver:
        """Return a copy that queries the metastore again.

        Args:
            is_retry: the copy is needed because directories were newer than the lists.
        """
        return replace(self, warehouse=self.warehouse.refreshed(is_retry=is_retry)) if self.warehouse else self

    def require_warehouse(self, name: str) -> Warehouse:
        """Return the metastore that resolves a name.

        Raises:
            UsageProblem: no metastore is configured.
        """
        if self.warehouse is None:
            raise UsageProblem(
                f"{name} names a table of a metastore, and none is known",
                "",
                "give --metastore, or set HIVE_CONF_DIR to where hive-site.xml says where it is",
            )
        return self.warehouse

    def prefetch(self, names: Sequence[str], *, partitions: bool = False) -> None:
        """Query a metastore at once for many names that are resolved one by one later.

        Args:
            partitions: query the named partitions, too; all of them are kept in memory.
        """
        if self.warehouse and len(names) > 1:
            parsed = []
            for name in names:
                with suppress(AcidctlError):  # it is reported when its turn comes
                    parsed.append(HiveName.parse(name))
            self.warehouse.prefetch(parsed, partitions=partitions)

    def changed(self, tables: Sequence[HiveTable | None]) -> list[AcidctlError | None]:
        """Return for each table an error if the metastore's lists are not its own any more, else None.

        A table that was dropped and created again counts its write ids from 1; one that has moved has other files.
        """
        if not (self.asks_metastore and self.warehouse):
            return [None] * len(tables)
        problems = iter(self.warehouse.changed([table for table in tables if table]))
        return [next(problems) if table else None for table in tables]

    def resolve(
        self, look: DirectoryListing, table: str, now: float, hive: HiveTable | None = None, *, may_clean: bool = True
    ) -> ResolvedSnapshot:
        """Return the lists that apply to one location.

        Args:
            table: see :meth:`SnapshotSpec.write_ids_for`.
            now: seconds since the epoch.
            hive: its table in the metastore.
            may_clean: these lists may decide what is removed.
        """
        given = self.spec.txns
        if self.asks_metastore and self.warehouse:
            if hive is None:
                note = reason(Code.NOT_IN_METASTORE, server=self.warehouse.metastore.shown)
                return ResolvedSnapshot(None, given, note=note)
            ids, txns = self.warehouse.lists(hive, may_clean=may_clean)
            return ResolvedSnapshot(ids, given or txns, note=self.warehouse.note, source=self.warehouse.source)
        write_ids = self.spec.write_ids_for(table)
        if self.spec.assumption is None or (write_ids is not None and given is not None):
            return ResolvedSnapshot(write_ids, given, source=EVERYTHING if write_ids is None else GIVEN)
        assumed = assume(look.listing, look.base_formats, self.spec.assumption, now)
        if write_ids is None:
            source = SnapshotSource("assumption")
            return ResolvedSnapshot(assumed.write_ids, given or assumed.txns, assumed, source=source)
        of_txns = replace(assumed, undecided=(), of_write_ids=False)
        return ResolvedSnapshot(write_ids, assumed.txns, of_txns, source=GIVEN)
