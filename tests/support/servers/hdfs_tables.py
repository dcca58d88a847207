"""Commands in processes of their own on tables of a NameNode."""

from __future__ import annotations

import json
import subprocess
import sys

from acidctl.location.snapshot import take_snapshot
from acidctl.rows.scan.scan import Scan
from acidctl.storage.registry import open_location
from support.tables import json_rows, without_log


def start(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "acidctl", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def acidctl(*arguments: str) -> tuple[int, str, str]:
    process = start(*arguments)
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


def rows_of(table: str) -> list[str]:
    fs, path = open_location(table)
    return sorted(json.dumps(row) for row in json_rows(Scan(take_snapshot(fs, path), row_id=True)))


def names_of(table: str) -> set[str]:
    fs, path = open_location(table)
    return without_log(entry.path for entry in fs.list_dir(path).entries)
