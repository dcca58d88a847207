"""``python -m support.conformance [--ours] [CASE...]`` in tests/: read the tables again, and write the results.

All servers are started unless only acidctl's own column is wanted. Chosen cases leave the results of the others.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from queue import SimpleQueue
from threading import Lock

from support.compacting import copy_table
from support.conformance.cases import CASES
from support.conformance.declared import Case
from support.conformance.hives import Copy, Judge, Readings
from support.conformance.ours import MODES, checksum, compact, metastore, seen, table_of
from support.conformance.results import Result, load, save

ZONE = "America/Los_Angeles"
"""Java's time zone in the servers: no value depends on it."""

Group = tuple[str, dict[Copy, Path]]
"""A table of Hive's, and the copies of cases that are its partitions."""


def by_table(chosen: Iterable[Case]) -> dict[str, list[Case]]:
    """Cases by the tables of Hive's that they are partitions of, those with many first."""
    found: dict[str, list[Case]] = {}
    for case in chosen:
        found.setdefault(table_of(case), []).append(case)
    return dict(sorted(found.items(), key=lambda item: -len(item[1])))


def ours(chosen: Sequence[Case], root: Path) -> tuple[dict[str, Result], dict[Copy, Path]]:
    """acidctl's part of the results of some cases, and the copies that a server is to read.

    Args:
        root: a directory for this call alone.
    """
    copies: dict[Copy, Path] = {}
    results: dict[str, Result] = {}
    for case in chosen:
        before = root / "before" / table_of(case) / f"p={case.name}"
        case.build(before)
        copies[case.name, "before"] = before
        declared = {"kind": case.kind, "source": case.source, "what": case.what}
        results[case.name] = {**declared, "files": checksum([before]), "readers": {}}
    with metastore(root / "before", list(chosen), 4) as fake:
        for case in chosen:
            results[case.name]["acidctl"] = seen(case, fake)
    for mode in MODES:
        with metastore(root / mode, list(chosen), 3) as fake:
            for case in chosen:
                after = copy_table(copies[case.name, "before"], root / mode / table_of(case) / f"p={case.name}")
                done = asdict(compact(case, fake, after, mode))
                results[case.name][mode] = {key: value for key, value in done.items() if value} | {"readers": {}}
                if done["outcome"] == "compacted":
                    copies[case.name, mode] = after
    return results, copies


def judged(
    version: int, groups: Iterable[Group], chosen: Sequence[Case], root: Path, with_trino: bool
) -> Iterator[dict[Copy, Readings]]:
    """What one Hive reads, and Trino with it, table by table."""
    judge = Judge(version, root / f"hive{version}", chosen, with_trino)
    try:
        for table, copies in groups:
            yield judge.read(table, copies)
    finally:
        judge.stop()


def main(arguments: Sequence[str]) -> int:
    """Write the results; 1 where some must be read by the servers again."""
    versions = [int(one[-1]) for one in arguments if one in ("--hive3", "--hive4")] or [3, 4]
    wanted = [one for one in arguments if not one.startswith("--")]
    chosen = [case for name, case in CASES.items() if not wanted or name in wanted]
    os.environ["TZ"] = ZONE
    root = Path(tempfile.mkdtemp(prefix="conformance-"))
    try:
        if "--ours" in arguments:
            results, _ = ours(chosen, root)
            if stale := _write(results):
                print("to be read again with the servers:", *stale, file=sys.stderr)
            return int(bool(stale))
        _judge_all(versions, chosen, root, "--no-trino" not in arguments)
    finally:
        shutil.rmtree(root)
    return 0


def _judge_all(versions: Sequence[int], chosen: Sequence[Case], root: Path, with_trino: bool) -> None:
    """acidctl makes the tables, group by group, and the servers read them as they come."""
    results: dict[str, Result] = {}
    waiting: dict[int, SimpleQueue[Group | None]] = {version: SimpleQueue() for version in versions}
    writing = Lock()

    def read(version: int) -> None:
        groups = iter(waiting[version].get, None)
        for found in judged(version, groups, chosen, root, with_trino and version == 4):
            with writing:
                for (name, copy), readings in found.items():
                    part = results[name] if copy == "before" else results[name][copy]
                    part["readers"] |= readings
                _write({name: results[name] for name, _ in found})

    with ThreadPoolExecutor() as threads:
        servers = [threads.submit(read, version) for version in versions]
        try:
            for table, members in by_table(chosen).items():
                made, copies = ours(members, root / table)
                with writing:
                    results |= made
                    _write(made)
                for queue in waiting.values():
                    queue.put((table, copies))
        finally:
            for queue in waiting.values():
                queue.put(None)
        for server in servers:
            server.result()


def _write(results: dict[str, Result]) -> list[str]:
    """Put results among the others; the names of those that no server has read as they are now."""
    before = load()
    stale = [name for name, result in results.items() if not _keep(result, before.get(name))]
    merged = before | results
    save({name: merged[name] for name in CASES if name in merged})
    return stale


def _keep(result: Result, before: Result | None) -> bool:
    """Put in what servers read before and not now, where the files are the same; whether all of them are."""
    if before is None or result["files"] != before["files"]:
        return False
    same = [mode for mode in MODES if result[mode].get("output") == before[mode].get("output")]
    for part, old in ((result, before), *((result[mode], before[mode]) for mode in same)):
        part["readers"] = old["readers"] | part["readers"]
    return len(same) == len(MODES)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
