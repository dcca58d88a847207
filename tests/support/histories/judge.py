"""Tables of a history as Hive reads them in each of its ways, and as acidctl reads them, beside their models."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from acidctl import find
from acidctl.api import Location
from acidctl.rows.scan.scan import Scan
from acidctl.validation.findings import Depth, Severity
from acidctl.verbs.reading.validate import ReadingTasks
from support.histories.kinds import ORDERED, asked, base, comparable, normal, text
from support.histories.model import Model
from support.servers.hive_server import HiveServer
from support.tables import json_rows

Ids = tuple[str, str, str]
Found = list[tuple[str, Ids]]
"""Rows as texts, each with its ROW__ID, sorted."""

MODES = {"fetch": ("more", "false"), "batches": ("none", "true"), "rows": ("none", "false")}
"""How Hive reads: without a job, in a job by batches (vectorised), and in a job row by row."""


class Judge:
    """Compares tables with their models.

    Attributes:
        statements: what happened so far, for messages.
    """

    def __init__(self, hive: HiveServer, models: Sequence[Model], statements: list[str]) -> None:
        self._hive, self._models, self.statements = hive, models, statements

    def rows(self) -> None:
        """All ways of reading give the model's rows, with the same ROW__IDs, each once."""
        ours = [self._of_acidctl(model) for model in self._models]
        for model, found in zip(self._models, ours, strict=True):
            self._same("acidctl", model, [row for row, _ in found], model.texts())
            keys = [(self._partition(model, row), ids) for row, ids in found]
            assert len(set(keys)) == len(keys), (model.name, "twice the same ROW__ID", self.statements)
        for mode, (conversion, batches) in MODES.items():
            self._hive.set("hive.fetch.task.conversion", conversion)
            self._hive.set("hive.vectorized.execution.enabled", batches)
            for model, expected, found in zip(self._models, ours, self._of_hive(mode), strict=True):
                self._same(mode, model, found, expected)
        self._hive.set("hive.fetch.task.conversion", "more")
        self._hive.set("hive.vectorized.execution.enabled", "true")

    def _of_hive(self, mode: str) -> list[Found]:
        queries = []
        for place, model in enumerate(self._models):
            shown = ", '|', ".join(asked(kind, name) for name, kind in model.types.items())
            ids = ", ".join(f"cast(ROW__ID.{part} as string)" for part in ("writeid", "bucketid", "rowid"))
            queries.append(f"select '{place}' as place, {ids}, concat({shown}) as shown from {model.name}")
        if mode == "fetch":  # a UNION is a job in any case
            lines = [line for query in queries for line in self._hive.sql(query)]
        else:
            lines = self._hive.sql(" union all ".join(queries))
        found: list[Found] = [[] for _ in self._models]
        for place, write_id, bucket, row_id, shown in lines:
            kinds = self._models[int(place)].types.values()
            texts = [normal(kind, part) for kind, part in zip(kinds, shown.split("|"), strict=True)]
            found[int(place)].append(("|".join(texts), (write_id, bucket, row_id)))
        return [sorted(rows) for rows in found]

    def _of_acidctl(self, model: Model) -> Found:
        found: Found = []
        for location in locations(self._hive, model):
            of_location = partition_of(location, model)
            for row in json_rows(Scan(location.snapshot(), row_id=True)):
                key = row.pop("ROW__ID")
                shown = [text(kind, row.get(name)) for name, kind in model.columns.items()]
                shown += [text(kind, of_location[name]) for name, kind in model.keys.items()]
                found.append(("|".join(shown), (str(key["writeid"]), str(key["bucketid"]), str(key["rowid"]))))
        return sorted(found)

    def _partition(self, model: Model, row: str) -> tuple[str, ...]:
        return tuple(row.split("|")[len(model.columns) :])

    def statistics(self, model: Model, chance: random.Random) -> None:
        """`count`, `min` and `max` are right, taken from statistics or from the rows."""
        numbers = [name for name, kind in model.columns.items() if base(kind) in ORDERED and base(kind) != "float"]
        numbers = [name for name in numbers if base(model.columns[name]) not in ("string", "varchar", "timestamp")]
        asked_for, expected = ["count(*)"], [str(len(model.rows))]
        for name in sorted({"id", chance.choice(numbers)}):
            values = [row[name] for row in model.rows if row[name] is not None]
            kind = model.columns[name]
            ordered = sorted(values, key=lambda value: comparable(kind, value))
            asked_for += [f"count({name})", f"min({name})", f"max({name})"]
            expected += [str(len(values)), *(text(kind, ordered[place]) if ordered else "NULL" for place in (0, -1))]
        query = f"select {', '.join(asked_for)} from {model.name}"
        for setting in ("true", "false"):
            self._hive.set("hive.compute.query.using.stats", setting)
            (found,) = self._hive.sql(query)
            shown = [self._statistic(model, *pair) for pair in zip(asked_for, found, strict=True)]
            assert shown == expected, (setting, query, shown, expected, self.statements)
        self._hive.set("hive.compute.query.using.stats", "true")

    def _statistic(self, model: Model, asked_for: str, found: str) -> str:
        if asked_for.startswith("count") or found == "NULL":
            return found
        kind = model.columns[asked_for[4:-1]]
        return text(kind, float(found)) if base(kind) == "double" else text(kind, found)

    def validate(self, model: Model) -> None:
        """`validate --deep` finds nothing but remarks."""
        readers = ("hive3", "hive4")[self._hive.version - 3 :]
        for location in locations(self._hive, model):
            report = location.validate(Depth.DEEP, readers=readers, ignored=("V19",), tasks=ReadingTasks(jobs=1))
            wrong = [item for item in report.findings if item.severity is not Severity.INFO and item.rule != "R15"]
            assert not wrong, (location.path, wrong, self.statements)

    def _same(self, who: str, model: Model, found: Sequence[Any], expected: Sequence[Any]) -> None:
        if found != expected:
            more = [row for row in found if row not in expected][:4]
            less = [row for row in expected if row not in found][:4]
            counts = f"{len(found)} rows, expected {len(expected)}"
            raise AssertionError(f"{who} of {model.name}: {counts}; more {more}, less {less}; {self.statements}")


def locations(hive: HiveServer, model: Model) -> list[Location]:
    """The locations of a table by the metastore."""
    return list(find(f"hive:default.{model.name}", metastore=hive.metastore))


def partition_of(location: Location, model: Model) -> Mapping[str, Any]:
    """The values of a location's partition keys as the model has them."""
    values: dict[str, Any] = {}
    for (name, kind), found in zip(model.keys.items(), location.partition.values(), strict=True):
        if found is None or found == "__HIVE_DEFAULT_PARTITION__":
            values[name] = None
        elif base(kind) in ("int", "bigint", "smallint"):
            values[name] = int(found)
        else:
            values[name] = found == "true" if kind == "boolean" else str(found)
    return values


def folder_of(hive: HiveServer, name: str) -> Path:
    """The directory of a table; Hive 4 makes those that are not transactional yet external ones."""
    return next(path for root in ("warehouse", "external") if (path := hive.warehouse.parent / root / name).exists())
