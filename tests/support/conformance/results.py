"""The file of results: what each reader read, and where acidctl does otherwise than Hive."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from support.conformance.known import KNOWN
from support.conformance.ours import CRASH
from support.paths import DATA

PATH = DATA / "conformance.json"
HIVES = ("hive3 rows", "hive3 vectors", "hive4 rows", "hive4 vectors")
MODES = ("minor", "major")
Result = dict[str, Any]


def load() -> dict[str, Result]:
    """The results by the names of cases."""
    results: dict[str, Result] = json.loads(PATH.read_text()) if PATH.exists() else {}
    for result in results.values():
        for mode in MODES:
            unread = result[mode].pop("unread", ())
            is_new = result[mode]["outcome"] == "compacted"
            same = {name: rows for name, rows in result["readers"].items() if is_new and name not in unread}
            result[mode]["readers"] = same | result[mode]["readers"]
    return results


def save(results: Mapping[str, Result]) -> None:
    """Write them, with what differs and why.

    Of a compacted copy what is read otherwise than before is written, and by whom it was not read yet.
    """
    written = {}
    for name, result in results.items():
        modes = {}
        for mode in MODES:
            changed = {one: rows for one, rows in result[mode]["readers"].items() if rows != result["readers"].get(one)}
            modes[mode] = {**result[mode], "readers": dict(sorted(changed.items()))}
            if result[mode]["outcome"] == "compacted" and (
                unread := result["readers"].keys() - result[mode]["readers"]
            ):
                modes[mode]["unread"] = sorted(unread)
        told = {"differs": differences(result), "reason": KNOWN.get(name, "")}
        written[name] = {**result, "readers": dict(sorted(result["readers"].items())), **modes, **told}
    PATH.write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n")


def differences(result: Result) -> list[str]:
    """Where acidctl does otherwise than Hive without refusing it or saying so; empty as a rule.

    ``cat``: it reads other rows than Hive 4 (than Hive 3, where Hive 4 refuses), and neither `cat` nor an error of
    `validate --deep` says so. ``minor hive4``: Hive 4 reads other rows after acidctl's minor compaction than before.
    """
    found = [] if _is_read_as_by_hive(result) or result["acidctl"]["finds"] else ["cat"]
    for mode in MODES:
        if result[mode]["outcome"] == "crashed":
            found.append(f"{mode} crashed")
        after = result[mode]["readers"]
        for hive in ("hive3", "hive4"):
            readers = [name for name in HIVES if name.startswith(hive) and name in result["readers"]]
            rows = [result["readers"][name] for name in readers if isinstance(result["readers"][name], list)]
            if rows and any(after.get(name, rows[0]) not in rows for name in readers):
                found.append(f"{mode} {hive}")
    return found


def _is_read_as_by_hive(result: Result) -> bool:
    ours = result["acidctl"]["rows"]
    if isinstance(ours, str):
        return not ours.startswith(CRASH)
    for hive in ("hive4", "hive3"):
        rows = [result["readers"].get(name) for name in HIVES if name.startswith(hive)]
        if read := [one for one in rows if isinstance(one, list)]:
            return ours in read
    return False
