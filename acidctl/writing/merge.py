"""MERGE into a full-ACID table: source rows replace or delete the rows with the same key, or are inserted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from acidctl.acid.names import Kind, format_directory
from acidctl.base.errors import BadDataError, UsageProblem
from acidctl.metastore.client import Metastore
from acidctl.metastore.interface import Operation
from acidctl.metastore.tables import HiveTable
from acidctl.orc.read.wide_timestamps import WideTimestamp
from acidctl.writing.rows.conform import RowConformer, column_hint, decoded, joined, unwritable
from acidctl.writing.rows.deleted_keys import DeletedKeys
from acidctl.writing.rows.files import StagedFile, StagedRows, write_deletes
from acidctl.writing.rows.held_rows import row_words
from acidctl.writing.rows.key_filter import KeyFilter, refuse_nested
from acidctl.writing.rows.key_lookup import comparable, key_numbers
from acidctl.writing.rows.routes import Routes
from acidctl.writing.targets import target_rows
from acidctl.writing.transaction import Seen, Statement
from acidctl.writing.write import Write

_WRITES, _DELETES = ("i", "insert", "u", "update"), ("d", "delete")
_OPERATIONS = "operations are insert, update and delete, or their first letters"
_TEXTS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_null)
_ORDERED = (
    pa.types.is_integer, pa.types.is_float32, pa.types.is_float64, pa.types.is_decimal, pa.types.is_date,
    pa.types.is_timestamp, pa.types.is_null,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class MergeRule:
    """How the rows of a source meet those of a table; it can be pickled.

    Attributes:
        key, operation, order: names of the source's columns, in lower case; the last two may be empty.
    """

    routes: Routes
    key: tuple[str, ...]
    operation: str = ""
    order: str = ""

    def check(self, table: HiveTable, given: Sequence[str]) -> None:
        """Refuse rows that lack a column, and keys that cannot be one.

        Args:
            given: the names of the source's columns, in lower case.

        Raises:
            UsageProblem: they cannot be merged.
        """
        names = self.routes.names
        if not self.key:
            raise UsageProblem("the merge has no key", "", "give the columns that identify a row")
        if twice := [name for name, count in Counter(given).items() if count > 1]:
            raise UsageProblem(f"the rows have two columns {twice[0]}", "Hive's names have no case", "rename one")
        for name in filter(None, (*self.key, self.operation, self.order)):
            if name not in given:
                raise UsageProblem(f"the rows have no column {name}", "", column_hint(name, given))
        if missing := [name for name in self.key if name not in names]:
            raise UsageProblem(f"the table has no column {missing[0]}", "", column_hint(missing[0], names))
        refuse_nested(self.key, [self.routes.types[names.index(name)] for name in self.key])
        if absent := [column.name for column in table.partition_keys if column.name not in given]:
            why = "it is a partition key, which decides where a row goes"
            raise UsageProblem(f"the rows have no column {absent[0]}", why, "add the column")

    @property
    def extra(self) -> list[str]:
        """Return the columns of the source that are not written, because the table lacks them."""
        return sorted({self.operation, self.order} - set(self.routes.names) - {""})


class MergeSource:
    """One row for each key of a source, and all rows with a NULL in the key.

    Args:
        source: the rows, with names in lower case, after :meth:`MergeRule.check`.

    Attributes:
        chosen: the places of the rows in the source; every other array follows them.
        columns: the table's columns, as :attr:`Routes.names`.
        is_delete: a mask of the rows that delete.

    Raises:
        UsageProblem: a column is unknown, or of a type that cannot be an order or operation.
        BadDataError: a value does not fit its column, an operation is unknown, the order has a NULL or NaN, or nothing
            says which row of a key is the last.
    """

    def __init__(self, rule: MergeRule, source: pa.Table) -> None:
        self._rule, names = rule, rule.routes.names
        rows = source.drop_columns(rule.extra)
        columns = RowConformer(rows.schema, names, rule.routes.types).all_columns(rows.to_batches())
        by_name = {
            name: joined([decoded(part) for part in source[name].chunks] or [pa.nulls(0)]) for name in rule.extra
        }
        by_name |= zip(names, columns, strict=True)
        is_delete = np.zeros(source.num_rows, np.bool_)
        if rule.operation:
            is_delete = _deletes(by_name[rule.operation], rule.operation, source)
        if rule.order:
            _refuse_order(by_name[rule.order], rule.order, source)
        self.chosen = self._last_of_each_key(by_name, rule.order)
        self.is_delete = is_delete[self.chosen]
        is_whole = len(self.chosen) == source.num_rows
        self.columns = columns if is_whole else [column.take(pa.array(self.chosen)) for column in columns]
        self._given = frozenset(source.column_names)

    def _last_of_each_key(self, rows: Mapping[str, pa.Array], order: str) -> NDArray[np.int64]:
        """Return the places of the last row of each key by the order column, and of all rows with a NULL in the key.

        Raises:
            BadDataError: two rows have the same key, and no order column, or the same value in it.
        """
        key = [rows[name] for name in self._rule.key]
        count = len(key[0])
        if not count:
            return np.empty(0, np.int64)
        keys = key_numbers(key)
        keys = np.where(keys < 0, count + np.arange(count), keys)  # a NULL equals nothing
        by = [pa.array(keys), *(comparable([rows[order]]) if order else [])]
        names = [str(at) for at in range(len(by))]
        sort_keys = [(name, "ascending") for name in names]
        ordered = np.asarray(pc.sort_indices(pa.table(by, names=names), sort_keys=sort_keys), np.int64)
        same = np.diff(keys[ordered]) == 0
        ties = key_numbers([rows[order]]) if order else np.zeros(count, np.int64)
        tied = np.flatnonzero(same & (np.diff(ties[ordered]) == 0))
        if len(tied):
            key_text = ", ".join(f"{name}={rows[name][int(ordered[tied[0]])]}" for name in self._rule.key)
            raise BadDataError(
                f"the rows have the key {key_text} several times",
                f"{order} is the same in them" if order else "nothing says which of them counts",
                "nothing was changed; name a column that orders them",
            )
        return np.sort(ordered[np.append(~same, True)])

    @property
    def kept(self) -> list[str]:
        """Return the table's columns that the source lacks: replaced rows keep their old values."""
        return [name for name in self._rule.routes.names if name not in self._given]

    @cached_property
    def filter(self) -> KeyFilter:
        """Return the keys as a condition on the table's rows."""
        names, types = self._rule.routes.names, self._rule.routes.types
        places = sorted(map(names.index, self._rule.key), reverse=True)  # partition keys are last, and rule out most
        return KeyFilter(
            [names[at] for at in places], [types[at] for at in places], [self.columns[at] for at in places]
        )

    def meet(self, seen: NDArray[np.bool_], found: NDArray[np.int64]) -> None:
        """Mark rows as found in the table; several rows of the table with one key may all be deleted, not replaced.

        Args:
            seen: a mask of the rows that were found before, which is changed.
            found: the place of each row that was found now.

        Raises:
            BadDataError: a row would replace several rows of the table.
        """
        values, counts = np.unique(found, return_counts=True)
        twice = values[(seen[values] | (counts > 1)) & ~self.is_delete[values]]
        if len(twice):
            names = self._rule.routes.names
            key = ", ".join(f"{name}={self.columns[names.index(name)][int(twice[0])]}" for name in self._rule.key)
            raise BadDataError(
                f"the table has several rows of the key {key}",
                "a merge would not know which of them to replace",
                "nothing was changed; choose a key that is unique",
            )
        seen[values] = True

    def replaced(self, found: NDArray[np.int64], rows: pa.RecordBatch) -> list[pa.Array]:
        """Return the new versions of rows of the table, without those that are deleted.

        Args:
            found: for each of `rows` the place of the row that replaces it.
            rows: their old values, with the columns :attr:`kept`.
        """
        stays = ~self.is_delete[found]
        at, mask = pa.array(found[stays]), pa.array(stays)
        kept = {name: rows.column(name).filter(mask) for name in self.kept}
        pairs = zip(self._rule.routes.names, self.columns, strict=True)
        return [kept[name] if name in kept else column.take(at) for name, column in pairs]


class Merge(Write):
    """One MERGE.

    A source row whose key is in the table replaces that row, and one whose key is new is inserted. With an operation
    column they may also delete. All rows of the source are held in memory, and one batch of the table at a time.

    Args:
        source: rows with columns of the table; a missing column keeps its old value, and is NULL in a new row.
        key: columns that identify a row; a NULL in one of them matches nothing.
        operation: the column of the source with `insert`, `update` or `delete`, or their first letters. Inserts and
            updates mean the same. The column is written only if the table has it.
        order: the column that orders the source's rows, of numbers, dates or timestamps: only the last row of each key
            counts. The column is written only if the table has it.
        inserts: rows with new keys are inserted, not left out.

    Raises:
        UsageProblem: a column is missing, unknown, given twice, or of a type that cannot be a key, order or operation.
        BadDataError: a value does not fit its column, an operation is unknown, the order has a NULL or NaN, or nothing
            says which row of a key is the last.
    """

    def __init__(
        self,
        metastore: Metastore,
        table: HiveTable,
        source: pa.Table,
        key: Sequence[str],
        *,
        operation: str = "",
        order: str = "",
        inserts: bool = True,
    ) -> None:
        super().__init__(metastore, table, Statement(Operation.UPDATE, is_dynamic=bool(table.partition_keys)))
        self._routes, self._inserts = Routes(table, self.row, {}), inserts
        names = tuple(dict.fromkeys(map(str.lower, key)))
        rule = MergeRule(self._routes, names, operation.lower(), order.lower())
        self._given = [name.lower() for name in source.column_names]
        rule.check(table, self._given)
        named = source.rename_columns(self._given).replace_schema_metadata(source.schema.metadata)
        self._rows, self._source = source, MergeSource(rule, named)

    def check(self) -> None:
        """Refuse values that the table cannot have, in rows that do not delete.

        Raises:
            BadDataError: a row has one.
        """
        source, keys = self._source, {column.name for column in self.table.partition_keys}
        written = np.flatnonzero(~source.is_delete)
        for name, kind, column in zip(self._routes.names, self._routes.types, source.columns, strict=True):
            is_key, is_not_null = name in keys, name in self.constraints.not_null
            if name in self._given and (is_key or is_not_null):
                rows = column.take(pa.array(written))
                if bad := unwritable(name, rows, kind, is_key=is_key, is_not_null=is_not_null):
                    place, why = bad
                    what = f"{row_words(self._rows, int(source.chosen[written[place]]))} does not fit into the table"
                    raise BadDataError(what, why, "nothing was changed; correct the row")

    def stage(self, transaction: Seen) -> list[StagedFile]:
        write_id, source = transaction.write_id, self._source
        deletes = format_directory(Kind.DELETE_DELTA, write_id, write_id, 0)
        self.constraints.require_columns(self._given)
        if not len(source.chosen):
            return []
        files: list[StagedFile] = []
        seen = np.zeros(len(source.chosen), np.bool_)
        wanted = [*(path[0] for path in source.filter.paths), *source.kept]
        with closing(self.new_rows(transaction)) as staged:
            for name, here, batches in target_rows(
                self.metastore, self.table, transaction, wanted, source.filter, storage=self.storage
            ):
                assert isinstance(here, KeyFilter)
                gone = DeletedKeys()
                for keys, rows in batches:
                    gone.add(keys)
                    found = here.find(rows.select([path[0] for path in here.paths]).columns)
                    source.meet(seen, found)
                    self._write(source.replaced(found, rows), staged)
                if gone:
                    files += write_deletes(self.places.stage, name, deletes, gone, row=self.row, write_id=write_id)
            self.updated = int((seen & ~source.is_delete).sum())
            is_new = pa.array(~source.is_delete & ~seen & self._inserts)
            for part in _parts([column.filter(is_new) for column in source.columns]):
                self._write(part, staged)
            return files + staged.finish()

    def _write(self, columns: list[pa.Array], staged: StagedRows) -> None:
        if len(columns[0]):
            self.constraints.require_values(self._routes.names, columns)
            self._routes.write(columns, staged)


def _deletes(words: pa.Array, name: str, held: pa.Table) -> NDArray[np.bool_]:
    """Return a mask of the rows that delete.

    Raises:
        UsageProblem: the column is not text.
        BadDataError: a row has another word than those of operations.
    """
    if not any(test(words.type) for test in _TEXTS):
        raise UsageProblem(f"the column {name} is {words.type}, not text", "operations are words", _OPERATIONS)
    lower = pc.utf8_lower(words.cast(pa.string()))
    is_valid = np.asarray(pc.is_in(lower, pa.array([*_WRITES, *_DELETES])))
    if not is_valid.all():
        row = int(np.argmin(is_valid))
        word = repr(words[row].as_py()) if words[row].is_valid else "NULL"
        raise BadDataError(
            f"{row_words(held, row)} has {word} in the column {name}, which is not an operation",
            _OPERATIONS,
            "nothing was changed; correct the row",
        )
    return np.asarray(pc.is_in(lower, pa.array(_DELETES)))


def _refuse_order(column: pa.Array, name: str, held: pa.Table) -> None:
    """Refuse a column that does not order all rows."""
    kind = column.type
    if not (isinstance(kind, WideTimestamp) or any(test(kind) for test in _ORDERED)):
        raise UsageProblem(
            f"the column {name} cannot order the rows: it is {kind}",
            "rows are ordered by numbers, dates or timestamps; as text, 9 would come after 10",
            "name another column, which the table need not have",
        )
    is_unordered = column.is_null(nan_is_null=True)
    if pc.any(is_unordered).as_py():
        row = int(pc.index(is_unordered, True).as_py())
        raise BadDataError(
            f"{row_words(held, row)} has {'NULL' if not column[row].is_valid else 'NaN'} in the column {name}",
            "it orders the rows, and a NULL or NaN is neither before nor after another value",
            "nothing was changed; correct the row",
        )


def _parts(columns: list[pa.Array], size: int = 1 << 17) -> Iterator[list[pa.Array]]:
    for start in range(0, len(columns[0]), size):
        yield [column.slice(start, size) for column in columns]
