"""``python -m support.conformance.changes [TYPE...]`` in tests/: record what both Hives read after a change of type.

`tests/data/type-changes.json` has for each type some values, as Hive prints them, and the values after ALTER TABLE gave
their column another type: for `both` Hives, or for `hive3` and `hive4` if these differ. Hive does not convert to target
types that are missing. BINARY is written in hexadecimal digits, and so is text that was BINARY.

``--times`` records `tests/data/text-times.json`: what both read of many texts whose column became DATE, TIMESTAMP or
BINARY, in two time zones: of Hive 3, a TIMESTAMP depends on the zone of its process.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

from support.servers.hive_server import HiveError, HiveServer

Values = list[str | None]
Read = dict[str, dict[str, Values]]
"""Values by the type that they had and the type that they got."""

DATA = Path(__file__).parents[2] / "data/type-changes.json"
TIMES = Path(__file__).parents[2] / "data/text-times.json"
TEXT_TYPES = ("string", "varchar(40)", "char(40)")
TIME_TYPES = ("date", "timestamp", "binary")
OTHER_ZONE = "Asia/Kolkata"
ZONE = "UTC"
"""Hive 3 converts times by the zone of its process."""
SETTINGS = {
    "hive.metastore.disallow.incompatible.col.type.changes": "false",
    "metastore.disallow.incompatible.col.type.changes": "false",
}


def recorded() -> dict[str, Any]:
    """Return the content of the file."""
    found: dict[str, Any] = json.loads(DATA.read_text())
    return found


def kinds() -> list[str]:
    """Return all types in the file, sorted."""
    found = recorded()
    return sorted(found.keys() | {target for entry in found.values() for target in entry["targets"]})


def asked(hive: HiveServer, own: str, values: Values, targets: Iterable[str]) -> Iterator[tuple[str, Values]]:
    """Have Hive write the values to a column whose type then becomes each of the others.

    Yields:
        the type and the values, for types that Hive converts to.
    """
    table = "t_" + "".join(filter(str.isalnum, own))
    hive.sql(f"create table {table} (id int, c {own}) stored as orc tblproperties('transactional'='true')")
    # Hive does not fold the rows of stack() into constants, which would turn -0.0 into 0.0.
    rows = ", ".join(f"{i}, {_literal(value)}" for i, value in enumerate(values))
    made = {"binary": "unhex(v)", "boolean": "v = 'true'"}.get(own, f"cast(v as {own})")
    hive.sql(f"insert into {table} select id, {made} from (select stack({len(values)}, {rows}) as (id, v)) told")
    for target in (own, *targets):
        form = "hex(c)" if "binary" in (own, target) else "c"
        try:
            hive.sql(f"alter table {table} change c c {target}")
            read = dict(row[:2] for row in hive.sql(f"select id, {form} from {table}"))  # a text may have tabs
        except HiveError:
            continue
        yield target, [None if (text := read[str(i)]) == "NULL" else text for i in range(len(values))]


def _literal(value: str | None) -> str:
    text = (value or "").replace("\\", "\\\\").replace("'", "\\'")
    return "cast(null as string)" if value is None else f"'{text}'"


def joined(own: str, values: Values, by: dict[int, Read]) -> dict[str, Any]:
    """Return the entry of a type from the values that each version of Hive read."""
    targets: dict[str, dict[str, Values]] = {}
    for target in sorted(by[3][own].keys() | by[4][own].keys() - {own}):
        three, four = (by[version][own].get(target) for version in (3, 4))
        found = {"both": three} if three == four else {"hive3": three, "hive4": four}
        targets[target] = {name: texts for name, texts in found.items() if texts is not None}
    targets.pop(own, None)
    return {"values": values, "targets": targets}


def record_times() -> None:
    """Write what both Hives read of the texts in `text-times.json`."""
    texts: Values = json.loads(TIMES.read_text())["texts"]
    found: dict[str, Read] = {}
    for version, zone in product((3, 4), (ZONE, OTHER_ZONE)):
        name = f"hive{version}" if zone == ZONE else f"hive{version} in {zone}"
        os.environ["TZ"] = zone
        with tempfile.TemporaryDirectory() as directory:
            hive = HiveServer(version, Path(directory), more=SETTINGS)
            try:
                found[name] = {own: dict(asked(hive, own, texts, TIME_TYPES)) for own in TEXT_TYPES}
            finally:
                hive.stop()
    lines = [f'"texts": {_shown(texts)}']
    for name, by in found.items():
        entries = (
            f"  {_shown(own)}: {_shown({t: v for t, v in read.items() if t != own})}" for own, read in by.items()
        )
        lines.append(f"{_shown(name)}: {{\n" + ",\n".join(entries) + "}")
    TIMES.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def main(arguments: list[str]) -> None:
    """Write the file again, with new values for some types or for all."""
    if arguments == ["--times"]:
        record_times()
        return
    os.environ["TZ"] = ZONE
    before = recorded()
    chosen = arguments or list(before)
    by: dict[int, Read] = {}
    for version in (3, 4):
        with tempfile.TemporaryDirectory() as directory:
            hive = HiveServer(version, Path(directory), more=SETTINGS)
            try:
                by[version] = {own: dict(asked(hive, own, before[own]["values"], kinds())) for own in chosen}
            finally:
                hive.stop()
    after = before | {own: joined(own, before[own]["values"], by) for own in chosen}
    DATA.write_text("{\n" + ",\n".join(_entry(*item) for item in after.items()) + "\n}\n")


def _entry(own: str, entry: dict[str, Any]) -> str:
    """Return the text of a type's entry, with a line for each other type."""
    lines = (f"  {_shown(target)}: {_shown(found)}" for target, found in entry["targets"].items())
    return f'{_shown(own)}: {{"values": {_shown(entry["values"])}, "targets": {{\n' + ",\n".join(lines) + "}}"


def _shown(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


if __name__ == "__main__":
    main(sys.argv[1:])
