"""Rules on a location as a whole: its place among others, whether it is one at all, and the rows of all its files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from acidctl.acid.reasons import Code
from acidctl.base.errors import BadDataError
from acidctl.location.evidence import evidence_of
from acidctl.location.snapshot import DirectoryListing as Seen
from acidctl.location.snapshot import Snapshot
from acidctl.rows.foreign.format import Format, text_beside
from acidctl.rows.read.lost_rows import find_lost_rows
from acidctl.validation.checks.footers import TailFacts
from acidctl.validation.checks.listing import V11
from acidctl.validation.checks.row_facts import V34, RowFacts, Spans, shared, shown_key, uncovered, united
from acidctl.validation.findings import DEEP, ERROR, INFO, LISTING, WARNING, Finding, Rule, Severity
from acidctl.validation.report import LocationToCheck
from acidctl.wording import human_count, lost_events, text_of

_TABLES_AT_ONCE = 16

V27 = Rule(
    "V27", ERROR, DEEP, "Several rows have the same ROW__ID, in two current files or in one.",
    "A delete removes all of them, and of those in one file some of Hive's readers show only one.",
    "A failed write or a copied directory: move away the surplus file. A writer that reused ids: "
    "`INSERT OVERWRITE TABLE t SELECT * FROM t` in Hive, vectorized, gives every row an id of its own.", "4.2",
)  # fmt: skip
V33 = Rule(
    "V33", ERROR, DEEP, "A delete event names a row that is in no file of the location.",
    "Legal where the row is gone already; otherwise rows were lost, or a delete went to the wrong place.",
    "See whether a directory is missing.", "4.2",
)  # fmt: skip


def across_rows(
    current: Mapping[str, RowFacts], hidden: Mapping[str, RowFacts], made: Mapping[str, Spans], sure_above: int
) -> Iterator[Finding]:
    """Yield the findings of the rules V11, V27, V33 and V34.

    Args:
        current: facts of the files that readers open, by path.
        hidden: facts of the files that only half a compaction hides, by path.
        made: the ids that readers give to current files without ids, by path.
        sure_above: a row of a later write id that is in no file is lost; an earlier row may be gone correctly.
    """
    inserts = {**made, **{path: facts.inserts for path, facts in current.items() if facts.inserts}}
    deletes = {path: facts.deletes for path, facts in current.items() if facts.deletes}
    yield from _repeated(current)
    yield from _shared(V27, "in both files", inserts)
    yield from _shared(V34, "deleted in both files", deletes)
    existing = united(list(inserts.values()))
    changes = [(path, facts.changes) for path, facts in current.items() if facts.changes]
    for path, spans in [*deletes.items(), *changes]:
        yield from _dangling(path, spans, existing, sure_above)
    deleted = united(list(deletes.values()))
    for path, facts in hidden.items():
        total = _size(facts.deletes)
        hits = total - sum(count for _, count, _ in uncovered(facts.deletes, existing))
        if hits:
            text = f"it is not read, so that rows that it deletes are back: {hits:,} of {total:,}"
            yield V11.finding(path, text, {"rows": hits})
    accounted = united([existing, deleted])
    for path, facts in hidden.items():
        lost = list(uncovered(facts.inserts, accounted))
        if lost:
            count = sum(item[1] for item in lost)
            first = shown_key((*lost[0][0], lost[0][2]))
            text = f"it is not read, and rows of it are nowhere else: {count:,}; first: {first}"
            yield V11.finding(path, text, {"rows": count})


def _repeated(files: Mapping[str, RowFacts]) -> Iterator[Finding]:
    """Yield findings for rows that share a ROW__ID with another row of their file."""
    for path, facts in files.items():
        count = facts.keys - _size(facts.inserts)
        if count:
            text = f"{human_count(count, 'row')} of it {'has' if count == 1 else 'have'} the ROW__ID of another one"
            yield V27.finding(path, text, {"rows": count})


def _shared(rule: Rule, text: str, files: Mapping[str, Spans]) -> Iterator[Finding]:
    paths = list(files)
    for pair in shared([files[path] for path in paths]):
        first, other = paths[pair.first], paths[pair.second]
        message = f"{human_count(pair.count, 'row')} {text}, this and {first}; first: {shown_key(pair.example)}"
        evidence = {"others": [first], "rows": pair.count, "first": list(pair.example)}
        yield rule.finding(other, message, evidence)


def _dangling(path: str, spans: Spans, existing: Spans, sure_above: int) -> Iterator[Finding]:
    """Yield findings for deletes of missing rows: only below the base may a compaction have removed them."""
    worst: dict[Severity, tuple[int, tuple[int, int, int]]] = {}
    for (original, bucket), count, row in sorted(uncovered(spans, existing)):
        severity = Severity.ERROR if original > sure_above else WARNING
        before, first = worst.get(severity, (0, (original, bucket, row)))
        worst[severity] = (before + count, first)
    for severity, (count, first) in worst.items():
        text = f"{count:,} of {_size(spans):,} events name a row that is in no file that was read"
        text = f"{text}; first: {shown_key(first)}"
        yield V33.finding(path, text, {"rows": count, "first": list(first)}, severity)


def _size(spans: Spans) -> int:
    return sum(int((last - first + 1).sum()) for first, last in spans.values())


V41 = Rule(
    "V41", WARNING, LISTING, "Files, or ACID directories, lie in a folder that holds tables deeper below.",
    "Whoever takes the folder for a table takes the files of those tables for its own original files.",
    "Move the files, or the tables, away; acidctl changes nothing in the folder itself.", "5.1",
)  # fmt: skip
V42 = Rule(
    "V42", INFO, LISTING, "Nothing shows that the location is of a transactional table.",
    "A name like base_5 is not evidence: exports and tables of other formats have such directories, too.",
    "If it is one, give --table-type to the commands that change it.", "11",
)  # fmt: skip


def folder_of_tables(target: LocationToCheck) -> Finding:
    """Return the finding for a folder that is not a location: a table lies deeper below."""
    below = target.holds.removeprefix(f"{target.path}/")
    return V41.finding("", f"files lie in this folder of tables: {below} stands deeper in it", {"table": below})


def evidence(target: LocationToCheck, seen: Seen) -> Iterator[Finding]:
    """Yield a finding if tables lie below the location, or if nothing shows that it is a transactional table."""
    shown = evidence_of(target.fs, target.path, seen)
    if not shown.may_change:
        rule = V41 if shown.reason.code == "tables-below" else V42
        yield rule.finding("", shown.text, {"code": shown.reason.code})


V44 = Rule(
    "V44", ERROR, LISTING, "The files have write ids, or transactions, that the metastore never gave.",
    "The metastore is older than the files (restored from a backup), the table was dropped and created again, or the "
    "files are of another table. Hive does not read them, its next writes take the same numbers, and delete them.",
    "Stop all writers of the table. Compare what the metastore was restored from, and when the table was created, with "
    "the times of the files; look for where the files came from. Change nothing before that is known.", "7.1",
)  # fmt: skip


def newer_than_metastore(target: LocationToCheck) -> Iterator[Finding]:
    """Yield names with ids above all that the metastore allocated; if that is unknown, report it as info."""
    for why in target.ahead:
        severity = INFO if why.code is Code.GIVEN_UNKNOWN else None
        yield V44.finding("", text_of(why), {"code": why.code, "directories": list(why.by)}, severity)


V40 = Rule(
    "V40", WARNING, LISTING, "A partitioned table has a base of its own, or a partition lies outside of its table.",
    "Hive reads partitions only: rows in the table's own directory are not seen.",
    "Move the misplaced directories into the partition that they belong to.",
)  # fmt: skip


def table_of(target: LocationToCheck) -> str:
    """Return the path of the table that a location belongs to."""
    return target.path.rsplit("/", len(target.partition))[0] if target.partition else target.path


class Misplaced:
    """Finds ACID directories beside partitions, and partitions that link to elsewhere, among successive locations."""

    def __init__(self) -> None:
        self._above: dict[str, str] = {}
        self._reported: set[str] = set()

    def check(self, target: LocationToCheck, *, has_directories: bool) -> Iterator[Finding]:
        """Yield the findings about the next location of a depth-first walk."""
        # A directory that is not above this location is not above any later one.
        self._above = {path: shown for path, shown in self._above.items() if target.path.startswith(f"{path}/")}
        table = table_of(target)
        for path, shown in self._above.items():
            if path not in self._reported and len(path) >= len(table):
                self._reported.add(path)
                what = "the table's own directory" if path == table else "the directory of its partitions"
                text = f"{what} {shown} holds ACID directories too"
                yield V40.finding("", text, {"table" if path == table else "directory": shown})
        if has_directories:
            self._above[target.path] = target.fs.display(target.path)
        local, root = target.fs.local_path(target.path), target.fs.local_path(table)
        if target.partition and local is not None and root is not None:
            real = os.path.realpath(local)
            if os.path.commonpath([real, os.path.realpath(root)]) != os.path.realpath(root):
                text = f"it is a link to {real}, outside of the table's directory"
                yield V40.finding("", text, {"target": real}, INFO)


class FormatsOfTables:
    """Finds text that no metastore describes in one partition of a table, and other formats in another."""

    def __init__(self) -> None:
        self._first: dict[str, dict[bool, tuple[str, Format]]] = {}  # by the table, and whether it is text

    def differ(
        self, target: LocationToCheck, other: TailFacts | None, files: Mapping[str, TailFacts]
    ) -> BadDataError | None:
        """Return why readers of the table refuse this location or one before it.

        Args:
            other: one of its files that is not text, if there is one.
            files: those of the location with a known format, by path; at least one.
        """
        table = table_of(target)
        example = other or next(iter(files.values()))
        first = self._first.setdefault(table, {})
        first.setdefault(other is None, (target.fs.display(f"{target.path}/{example.path}"), example.format))
        if len(self._first) > _TABLES_AT_ONCE:
            del self._first[next(iter(self._first))]
        return text_beside(first[True][0], *first[False]) if len(first) > 1 else None


V43 = Rule(
    "V43", ERROR, LISTING, "A compaction's result has no file, while what it replaced has rows that nobody deleted.",
    "Readers do not see these rows, and Hive's cleaner removes them permanently. Hive 4 loses them where the path of a "
    "partition is not ASCII and it compacts by MapReduce.",
    "Run `acidctl repair` before a cleaner does its work, and let Hive compact by queries.", "10",
)  # fmt: skip


def lost_by_compactions(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield the findings of rule V43."""
    for lost in find_lost_rows(snapshot):
        result = lost.result
        evidence = {
            "rows": lost.rows,
            "deletes": lost.deletes,
            "replaced": list(result.replaced),
            "isRead": result.is_read,
        }
        yield V43.finding(result.name, lost_events(lost.rows, lost.deletes), evidence)
