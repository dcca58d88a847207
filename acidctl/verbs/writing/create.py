"""CREATE TABLE as a verb: show the table, ask, and create it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from acidctl.acid.listing import TableType
from acidctl.base.errors import UsageProblem
from acidctl.location.arguments import HiveName
from acidctl.metastore.errors import AlreadyExists
from acidctl.metastore.tables import HiveTable
from acidctl.orc.types import OrcType
from acidctl.outcome import Outcome, Remark, Result
from acidctl.verbs.events import Events, Question
from acidctl.verbs.selection import Selection
from acidctl.verbs.writing.options import CreateOptions
from acidctl.verbs.writing.statements import require_table
from acidctl.wording import human_count
from acidctl.writing.create import Create
from acidctl.writing.definition import Definition, parse_columns

_FORMATS = {"orc": "ORC", "parquet": "Parquet", "text": "text"}


@dataclass(frozen=True, kw_only=True)
class TableCreated(Outcome):
    """A table that was created, would be created, or was there already.

    Attributes:
        table: as planned; once it exists, as the metastore has it.
        is_other: the existing table has other columns, keys or buckets, or is of another type.
    """

    table: HiveTable
    is_other: bool = False

    @property
    def heading(self) -> str:
        return "to create" if self.result is Result.PLANNED else super().heading

    def line(self) -> str:
        if self.result is Result.NOTHING_TO_DO:
            return f"{self.location}: there is such a table already"
        planned = " (planned)" if self.result is Result.PLANNED else ""
        return f"{self.location}: create{planned}: {description_of(self.table)}; at {self.table.location}"

    def remarks(self) -> Iterator[Remark]:
        if self.is_other:
            yield Remark(f"{self.location} differs from the definition: {description_of(self.table)}")

    def facts(self) -> Mapping[str, Any]:
        table = self.table
        assert table.table_type or self.result is Result.NOTHING_TO_DO
        return {
            "verb": "create",
            "type": table.table_type.value if table.table_type else None,
            "format": table.stored_as.format,
            "columns": [{"name": column.name, "type": column.type} for column in table.columns],
            "partitionKeys": [{"name": column.name, "type": column.type} for column in table.partition_keys],
            "buckets": table.buckets,
            "bucketColumns": list(table.bucket_columns),
            "directory": table.location,
        }


def description_of(table: HiveTable) -> str:
    """Return type, format, columns, partition keys and buckets in words."""
    kind = table.table_type.value if table.table_type else "not transactional"
    keys = ", ".join(f"{key.name} {key.type}" for key in table.partition_keys)
    buckets = f"{human_count(table.buckets, 'bucket')} by {', '.join(table.bucket_columns)}" if table.buckets else ""
    columns = ", ".join(f"{column.name} {column.type}" for column in table.columns)
    parts = (kind, table.stored_as.format, f"partitioned by {keys}" if keys else "", buckets)
    return f"({columns}) {', '.join(filter(None, parts))}"


def create(
    selection: Selection, options: CreateOptions, events: Events, columns: OrcType | None = None
) -> Iterator[TableCreated]:
    """Yield the table if it is a dry run or has to be confirmed, then the created table.

    Args:
        columns: the columns; without them, those of `options`.

    Raises:
        UsageProblem: the name or the definition cannot be used.
        NotFoundError: there is no such database.
        ConflictError: a table has this name already.
        RefusedError: the location holds files, or it was not confirmed.
    """
    if columns is None and options.schema is None:
        raise UsageProblem("the table has no columns", "", "give --schema or --like")
    shown = require_table(selection)
    name = HiveName.parse(shown)
    metastore = selection.resolver.require_warehouse(shown).metastore
    definition = Definition(
        columns=parse_columns(options.schema or "", "--schema") if columns is None else columns,
        partitioned_by=options.partitioned_by,
        clustered_by=options.clustered_by or (),
        buckets=options.buckets,
        table_type=TableType.FULL_ACID if options.type == "full" else TableType.INSERT_ONLY,
        stored_as=_FORMATS[options.stored_as],
        location=options.directory,
        properties=dict(options.property),
        comment=options.comment,
    )
    settings = metastore.settings
    owner = re.split("[/@]", settings.client_principal)[0] or settings.user_name
    table = definition.table(name.database, name.table, owner)
    statement = Create(metastore, table, selection.storage)
    if options.if_not_exists and (there := statement.existing()):
        yield _existing(shown, table, there)
        return
    if options.dry_run or events.shows_plans:
        statement.check()
        yield TableCreated(location=shown, result=Result.PLANNED, table=statement.table)
        if options.dry_run:
            return
        what = f"{shown} at {statement.table.location}"
        events.confirm(Question(f"{what} would be created", f"Create {what}?", "nothing was created", (shown,)))
    try:
        made = statement.run()
    except AlreadyExists:
        there = statement.existing() if options.if_not_exists else None
        if there is None:
            raise
        yield _existing(shown, table, there)  # somebody else was quicker
    else:
        yield TableCreated(location=shown, result=Result.CREATED, table=made)


def _existing(shown: str, wanted: HiveTable, there: HiveTable) -> TableCreated:
    is_other = _form(wanted) != _form(there)
    return TableCreated(location=shown, result=Result.NOTHING_TO_DO, table=there, is_other=is_other)


def _form(table: HiveTable) -> tuple[object, ...]:
    format_ = table.stored_as.format
    return table.columns, table.partition_keys, table.table_type, format_, table.buckets, table.bucket_columns
