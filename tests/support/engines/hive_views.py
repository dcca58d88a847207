"""What Hive's SHOW statements show of transactions, locks and compactions, beside what acidctl's views do."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from acidctl.cli.command_table import GROUPS
from support.command_line import Result
from support.servers.hive_server import HiveServer

Shown = dict[str, Any]


@dataclass(frozen=True)
class Views:
    """Of one Hive, whose metastore nobody else asks.

    Attributes:
        acidctl: the command.
    """

    hive: HiveServer
    acidctl: Callable[..., Result]

    def ask(self, *line: str, status: int = 0) -> Result:
        """A command on this Hive's metastore."""
        group = ("hive",) if line[0] in GROUPS["hive"] else ()
        found = self.acidctl(*group, *line, "--metastore", self.hive.metastore)
        assert found.status == status, found
        return found

    def told(self, *line: str) -> list[Shown]:
        """The records of a view."""
        return [json.loads(one) for one in self.ask(*line, "-o", "jsonl").out.splitlines()]

    def shown(self, statement: str) -> list[Mapping[str, str]]:
        """The rows of a SHOW statement by its own header, empty where nothing is told."""
        head, *rows = self.hive.sql(statement)
        return [
            {
                name: "" if value.strip() in ("---", "NULL") else value.strip()
                for name, value in zip(head, row, strict=True)
            }
            for row in rows
        ]

    def transactions(self) -> dict[int, Shown]:
        """Those of acidctl, by id, which are those of Hive."""
        ours = self.told("txns")
        hives = {
            int(row["Transaction ID"]): {
                "state": row["Transaction State"].lower(),
                "started": whole(row["Started Time"]),
                "lastHeartbeat": whole(row["Last Heartbeat Time"]),
                "user": row["User"],
                "host": row["Hostname"],
            }
            for row in self.shown("show transactions")
        }
        found = {one["id"]: one for one in ours}
        _same(found, hives)
        return found

    def locks(self) -> dict[tuple[int, int], Shown]:
        """Those of acidctl, by id and part, which are those of Hive."""
        ours = self.told("locks")
        hives = {}
        for row in self.shown("show locks"):
            id_, _, part = row["Lock ID"].partition(".")
            hives[int(id_), int(part or 0)] = {
                "database": row["Database"],
                "table": row["Table"] or None,
                "partition": row["Partition"] or None,
                "state": row["State"],
                "blockedBy": row["Blocked By"],
                "type": row["Type"],
                "txn": int(row["Transaction ID"] or 0) or None,
                "lastHeartbeat": whole(row["Last Heartbeat"]),
                "acquired": whole(row["Acquired At"]),
                "user": row["User"],
                "host": row["Hostname"],
                "agent": row["Agent Info"].replace("Unknown", "") or None,
            }
        found = {(one["lock"], one["part"]): one for one in ours}
        _same({key: one | {"blockedBy": _blocker(one["blockedBy"])} for key, one in found.items()}, hives)
        return found

    def compactions(self, table: str) -> list[Shown]:
        """Those of one table, the newest first; all of acidctl's are those of Hive."""
        ours = self.told("compactions")
        is_hive4 = self.hive.version > 3
        hives = {}
        for row in self.shown("show compactions"):
            hives[int(row["CompactionId"])] = {
                "database": row["Database"],
                "table": row["Table"],
                "partition": row["Partition"] or None,
                "kind": row["Type"].lower().replace("_", "-"),
                "state": row["State"],
                "started": whole(row["Start Time"]),
                "job": row["HadoopJobId"] or None,
            }
            hives[int(row["CompactionId"])] |= _of_hive_4(row) if is_hive4 else {"worker": row["Worker"]}
        found = {one["id"]: one for one in ours}
        seen = {
            id_: one
            | {"worker": one["worker"] or "", "initiator": one["initiator"] or ""}
            | {"error": " ".join((one["error"] or "").split()) or None}
            | {"txn": one["txn"] or 0, "nextTxn": one["nextTxn"] or 0, "highestWriteId": one["highestWriteId"] or 0}
            for id_, one in found.items()
        }
        _same(seen, hives)
        return sorted((one for one in ours if one["table"] == table), key=lambda one: -one["id"])


def _of_hive_4(row: Mapping[str, str]) -> Shown:
    return {
        "enqueued": whole(row["Enqueue Time"]),
        "error": " ".join(row["Error message"].split()) or None,
        "pool": row["Pool name"] or None,
        "worker": "-".join(filter(None, (row["Worker host"], row["Worker"]))),
        "initiator": "-".join(filter(None, (row["Initiator host"], row["Initiator"]))),
        "txn": int(row["TxnId"] or 0),
        "nextTxn": int(row["Next TxnId"] or 0),
        "committed": whole(row["Commit Time"]),
        # What is not in the history yet has it under the name of Hive 2.
        **({"highestWriteId": int(row["Highest WriteId"])} if row["Highest WriteId"] else {}),
    }


def _same(ours: Mapping[Any, Shown], hives: Mapping[Any, Shown]) -> None:
    assert ours.keys() == hives.keys(), (ours, hives)
    differing = {
        key: {
            name: (_seconds(ours[key][name]), value)
            for name, value in row.items()
            if _seconds(ours[key][name]) != value
        }
        for key, row in hives.items()
    }
    told = {key: row for key, row in differing.items() if row}
    assert not told, told


def _seconds(value: Any) -> Any:
    """A time of JSON as seconds."""
    if isinstance(value, str) and value.endswith("Z"):
        return int(datetime.fromisoformat(value).timestamp())
    return value


def _blocker(lock: Shown | None) -> str:
    return f"{lock['lock']}.{lock['part']}" if lock else ""


def whole(text: str) -> int | None:
    """Milliseconds as seconds; None where no time is told."""
    return int(text) // 1000 or None if text else None
