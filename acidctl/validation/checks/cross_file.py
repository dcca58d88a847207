"""Findings from the rows of all files together: duplicates, dangling and repeated deletes, half compactions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from acidctl.validation.checks.listing import V11
from acidctl.validation.checks.row_facts import V34, RowFacts, shown_key
from acidctl.validation.checks.spans import Spans, shared, uncovered, united
from acidctl.validation.findings import DEEP, ERROR, WARNING, Finding, Rule, Severity
from acidctl.wording import human_count

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
