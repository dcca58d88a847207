"""A table of the histories in plain Python: its form, its rows, conditions on them, and new values."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from support.histories.kinds import (
    KEYS,
    NUMBERS,
    ORDERED,
    VALUES,
    base,
    comparable,
    condition_literal,
    has_literal,
    text,
)

Row = dict[str, Any]
Predicate = Callable[[Row], bool | None]
Condition = tuple[str, Predicate]
"""SQL, and what it says of a row: None if that is not known, as NULL is compared."""


@dataclass
class Model:
    """One table.

    Attributes:
        columns, keys: types by name.
        clustered: names of the bucket columns.
        version: of the bucket hash.
        is_converted: its first files are from before it was transactional.
        repeats: ids may repeat.
        rows: values by the names of columns and keys.
    """

    name: str
    columns: dict[str, str]
    keys: dict[str, str] = field(default_factory=dict)
    clustered: tuple[str, ...] = ()
    buckets: int = 0
    version: int = 2
    is_converted: bool = False
    repeats: bool = False
    rows: list[Row] = field(default_factory=list)
    next_id: int = 1

    @property
    def types(self) -> dict[str, str]:
        return {**self.columns, **self.keys}

    def texts(self) -> list[str]:
        """The rows as texts, sorted."""
        return sorted("|".join(text(kind, row[name]) for name, kind in self.types.items()) for row in self.rows)

    def declared(self, chance: random.Random) -> str:
        """Its CREATE TABLE, transactional or not yet."""
        columns = ", ".join(f"{name} {kind} comment 'of {name}'" for name, kind in self.columns.items())
        keys = ", ".join(f"{name} {kind}" for name, kind in self.keys.items())
        by = f" partitioned by ({keys})" * bool(keys)
        by += f" clustered by ({', '.join(self.clustered)}) into {self.buckets} buckets" * bool(self.buckets)
        properties = {"bucketing_version": str(self.version)} if self.buckets else {}
        if not self.is_converted:
            properties["transactional"] = "true"
        properties["orc.compress"] = chance.choice(["ZLIB", "SNAPPY", "ZSTD"][:2])
        stated = ", ".join(f"'{key}'='{value}'" for key, value in properties.items())
        return f"create table {self.name} ({columns}){by} stored as orc tblproperties({stated})"


def made(name: str, chance: random.Random, version: int) -> Model:
    """A table of a random form, empty; Hive refuses a UNION of tables whose bucket hashes have several versions."""
    kinds = chance.sample(sorted(VALUES), chance.choice([1, 2, 4, 6]))
    columns = {"id": "int", "name": "string", **{f"c{place}": kind for place, kind in enumerate(kinds)}}
    keys = chance.choice([[], [], [], *([kind] for kind in KEYS), ["int", "string"], ["date", "varchar(10)"]])
    model = Model(name, columns, {f"p{place}": kind for place, kind in enumerate(keys)})
    if chance.random() < 0.4:
        model.clustered = chance.choice([("id",), ("id",), ("name", "id"), ("c0",)])
        if base(model.types[model.clustered[0]]) in ("binary", "timestamp"):
            model.clustered = ("id",)
        model.buckets, model.version = chance.choice([2, 3]), version
    model.is_converted = chance.random() < 0.3
    model.repeats = chance.random() < 0.2
    return model


def value_of(chance: random.Random, kind: str, *, literal: bool = False) -> Any:
    """A random value, NULL now and then.

    Args:
        literal: SQL must be able to say it.
    """
    values = [value for value in VALUES[kind] if not literal or has_literal(kind, value)]
    return chance.choice([*values, *values, None])


def new_rows(model: Model, chance: random.Random, count: int, *, literal: bool = False) -> list[Row]:
    """Rows to insert, with ids that the table does not have unless its ids repeat."""
    rows = []
    for _ in range(count):
        number = chance.randrange(1, model.next_id + 1) if model.repeats and chance.random() < 0.3 else model.next_id
        row: Row = {"id": number}
        for name, kind in model.columns.items():
            if name != "id":
                row[name] = value_of(chance, kind, literal=literal)
        row |= {name: chance.choice(KEYS[kind]) for name, kind in model.keys.items()}
        model.next_id += 1
        rows.append(row)
    return rows


def condition(model: Model, chance: random.Random, depth: int = 0, *, for_hive: bool = False) -> Condition:
    """A condition that both acidctl and Hive understand, often one of a part of the rows.

    Args:
        for_hive: it uses no key that may be NULL, which Hive takes for a text.
    """
    choice = chance.random()
    if depth < 2 and choice < 0.25:
        (left, one), (right, other) = (condition(model, chance, depth + 1, for_hive=for_hive) for _ in range(2))
        word = chance.choice(["and", "or"])
        return f"({left} {word} {right})", lambda row: _joined(word, one(row), other(row))
    if depth < 2 and choice < 0.32:
        inner, met = condition(model, chance, depth + 1, for_hive=for_hive)
        return f"not ({inner})", lambda row: None if met(row) is None else not met(row)
    if choice < 0.6:
        return _on_ids(model, chance)
    keys = {name: kind for name, kind in model.keys.items() if not (for_hive and None in KEYS[kind])}
    name, kind = chance.choice([*model.columns.items(), *keys.items()])
    values = KEYS[kind] if name in model.keys else VALUES[kind]
    if choice < 0.72 or base(kind) not in (*ORDERED, "char", "boolean"):
        wanted = chance.random() < 0.5
        return f"{name} is {'' if wanted else 'not '}null", lambda row: (row[name] is None) == wanted
    value = chance.choice([item for item in values if item is not None])
    signs = ["=", "<>", *(["<", ">="] if base(kind) in ORDERED else [])]
    return _compared(name, kind, chance.choice(signs), value)


def _on_ids(model: Model, chance: random.Random) -> Condition:
    low = chance.randrange(1, model.next_id + 1)
    if chance.random() < 0.5:
        high = low + chance.choice([0, 3, 10])
        return f"id between {low} and {high}", lambda row: low <= row["id"] <= high
    chosen = sorted({chance.randrange(1, model.next_id + 1) for _ in range(4)})
    return f"id in ({', '.join(map(str, chosen))})", lambda row: row["id"] in chosen


def _compared(name: str, kind: str, sign: str, value: Any) -> Condition:
    right = comparable(kind, value)

    def met(row: Row) -> bool | None:
        if row[name] is None:
            return None
        left = comparable(kind, row[name])
        return {"=": left == right, "<>": left != right, "<": left < right, ">=": left >= right}[sign]

    return f"{name} {sign} {condition_literal(kind, value)}", met


def _joined(word: str, one: bool | None, other: bool | None) -> bool | None:
    decides = word == "or"
    if one is decides or other is decides:
        return decides
    return None if one is None or other is None else not decides


def assignments(model: Model, chance: random.Random) -> dict[str, tuple[str, Callable[[Row], Any]]]:
    """The new values of an UPDATE: SQL that both understand, and the value by the old row."""
    free = [name for name in model.columns if name not in (*model.clustered, "id")]
    chosen = chance.sample(free, min(len(free), chance.choice([1, 2, 3])))
    return {name: _assigned(name, model.columns[name], chance) for name in chosen}


def _assigned(name: str, kind: str, chance: random.Random) -> tuple[str, Callable[[Row], Any]]:
    kinds = base(kind)
    if kinds == "string" and chance.random() < 0.3:
        return f"{name} || '!'", lambda row: None if row[name] is None else row[name] + "!"
    if kinds in ("tinyint", "smallint", "int", "bigint") and chance.random() < 0.3:
        return f"{name} * 0 - 3", lambda row: None if row[name] is None else -3
    if kinds == "double" and chance.random() < 0.3:
        return f"{name} * 2", lambda row: None if row[name] is None else row[name] * 2
    if kinds == "decimal" and chance.random() < 0.3:
        return f"{name} * 0 + 2", lambda row: None if row[name] is None else str(Decimal(2))
    value = chance.choice(VALUES[kind])
    simple = (*NUMBERS, "string", "varchar", "char", "date", "timestamp", "boolean")
    if kinds not in simple or chance.random() < 0.2:
        return ("null", lambda row: None) if kinds in simple else (name, lambda row: row[name])
    return condition_literal(kind, value), lambda row: value


def changed(row: Row, new: Mapping[str, tuple[str, Callable[[Row], Any]]]) -> Row:
    """The row after an UPDATE."""
    return {**row, **{name: compute(row) for name, (_, compute) in new.items()}}


def merged(
    model: Model, source: Sequence[Row], key: Sequence[str], deletes: Sequence[bool], given: Sequence[str]
) -> list[Row] | None:
    """The rows after acidctl's MERGE; None if a key is in several rows that it would replace.

    Args:
        deletes: which rows of the source delete.
        given: names of the columns that the source has.
    """
    by_key = {tuple(text(model.types[name], row[name]) for name in key): place for place, row in enumerate(source)}
    rows: list[Row] = []
    old: dict[int, Row] = {}
    for row in model.rows:
        place = by_key.get(tuple(text(model.types[name], row[name]) for name in key), -1)
        if place < 0 or any(row[name] is None for name in key):
            rows.append(row)
        elif place in old and not deletes[place]:
            return None
        else:
            old[place] = row
    for place, row in enumerate(source):
        if not deletes[place]:
            before = old.get(place, {})
            rows.append({name: row[name] if name in given else before.get(name) for name in model.types})
    return rows
