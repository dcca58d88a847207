"""English for people: the one place where sentences are made of the reasons that the rules and the planners give.

Nothing is decided here, and nothing is decided by what it says; programs go by :class:`acidctl.acid.reasons.Code`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from acidctl.acid.names import AcidDirectory, Kind, acid_directory
from acidctl.acid.reasons import Code, Reason, reason
from acidctl.acid.writeids import IdRun, IdStatus, count_of, of_status

_SHORT_RUNS = 3
"""Ranges of one kind, where names are shortened."""
_SHOWN_RUNS = 12
"""Runs that a sentence names; a program has them all."""


def text_of(reason: Reason) -> str:
    """Return the sentence of a reason, without a full stop."""
    sentence = MEANINGS[reason.code].sentence
    if callable(sentence):
        return sentence(reason)
    values = dict(reason.values)
    pattern = sentence if isinstance(sentence, str) else sentence[values["how"]]
    return pattern.format(by=reason.by, ids=reason.ids, **values)


def next_step(code: Code) -> str:
    """Return what to do where a reason of this code is in the way."""
    return MEANINGS[code].next_step


def example(code: Code) -> Reason:
    """Return a reason of this code with the values that its sentence names."""
    return MEANINGS[code].example


def joined(reasons: Iterable[Reason]) -> str:
    """Return the sentences of several in one line."""
    return "; ".join(map(text_of, reasons))


def human_count(count: int, noun: str, plural: str | None = None) -> str:
    """``1 file``, ``1,234 files``."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def some_of(names: Sequence[str], most: int = 3, between: str = ", ") -> str:
    """Return the first of them, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return between.join(names[:most]) + more


def names_in_short(names: Iterable[str]) -> str:
    """``base_0000003, delta 4-40, delete_delta 4-40 (12)``: ACID directories by kind and write ids.

    A range without a number is whole: every write id in it is of one of the directories.
    """
    kinds: dict[Kind, list[AcidDirectory]] = {}
    others: list[str] = []
    for name in names:
        if directory := acid_directory(name):
            kinds.setdefault(directory.kind, []).append(directory)
        else:
            others.append(name)
    texts = [text for kind, directories in kinds.items() for text in _ranges_in_short(kind, directories)]
    return ", ".join([*texts, *([some_of(others)] if others else [])])


def _ranges_in_short(kind: Kind, directories: Sequence[AcidDirectory]) -> list[str]:
    if len(directories) == 1:
        return [directories[0].name]
    runs: list[tuple[int, int]] = []
    for low, high in sorted(directory.range for directory in directories):
        if runs and low <= runs[-1][1] + 1:
            runs[-1] = runs[-1][0], max(high, runs[-1][1])
        else:
            runs.append((low, high))
    if len(runs) > _SHORT_RUNS:
        return [f"{kind.value} {runs[0][0]}-{runs[-1][1]} ({len(directories):,})"]
    return [f"{kind.value} {low}" if low == high else f"{kind.value} {low}-{high}" for low, high in runs]


# --- ids and times -------------------------------------------------------------------------------------------------


def span(first: int, last: int) -> str:
    """``7``, ``7 and 8`` or ``7 to 9``."""
    if first == last:
        return str(first)
    return f"{first} and {last}" if last == first + 1 else f"{first} to {last}"


def spans(runs: Sequence[IdRun]) -> str:
    """``3``, ``3 and 5``, ``1 to 3, 7 and 9``, ``1 and 2, 5``; of very many the first, and how many more."""
    texts = [span(run.first, run.last) for run in runs[:_SHOWN_RUNS]]
    if len(runs) > _SHOWN_RUNS:
        return f"{', '.join(texts)} and {len(runs) - _SHOWN_RUNS} more"
    if len(texts) < 2 or " " in texts[-1] or any(" and " in text for text in texts):
        return ", ".join(texts)
    return f"{', '.join(texts[:-1])} and {texts[-1]}"


def write_ids_text(runs: Sequence[IdRun]) -> str:
    """Return ``write id 3``, ``write ids 3 and 5``."""
    return f"write {'id' if count_of(runs) == 1 else 'ids'} {spans(runs)}"


def write_id_range(first: int, last: int) -> str:
    """Return ``write id 3``, ``write ids 3 to 5``."""
    return f"write {'id' if first == last else 'ids'} {span(first, last)}"


def status_text(status: IdStatus) -> str:
    """Return what is known of an id, in words."""
    return "above the high watermark" if status is IdStatus.ABOVE else status.value


def duration(seconds: float) -> str:
    """``12 s``, ``5 min``, ``3 h``: the whole units that have passed."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size or seconds == size:
            return f"{int(seconds // size)} {unit}"
    return f"{int(seconds)} s"


def iso_time(seconds: float | None) -> str | None:
    """``2026-11-21T22:24:05Z``, as JSON has times; None when there is no time."""
    return None if seconds is None else _iso_time(math.floor(seconds))


@lru_cache(maxsize=1 << 12)
def _iso_time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def age_text(seconds: float | None) -> str:
    """``3 h``; a dash where nobody knows."""
    return "-" if seconds is None else duration(seconds)


def time_of(seconds: float | None) -> str | None:
    """Return a time of a record, as JSON has it; None for what no calendar has."""
    try:
        return iso_time(seconds)
    except (OverflowError, ValueError, OSError):
        return None


def utc(seconds: float) -> str:
    """``2026-11-21 22:24 UTC``: the minute that had begun."""
    return _utc(seconds // 60)


@lru_cache(maxsize=1 << 12)
def _utc(minute: float) -> str:
    return f"{datetime.fromtimestamp(minute * 60, UTC):%Y-%m-%d %H:%M} UTC"


def _may_go(until: float | None) -> str:
    # Never before.
    return "never to go by this age" if until is None else f"may go after {utc(until + 59.999)}"


# --- sentences -----------------------------------------------------------------------------------------------------

_OWN = {
    ".acidctl-lock": "the lock of a run of acidctl",
    ".acidctl-trash": "what cleanings of acidctl took away",
    ".acidctl-backup": "what repairs of acidctl replaced",
}
"""What acidctl itself keeps hidden in a location."""


def _aborted(reason: Reason) -> str:
    first, last = reason.ids[0], reason.ids[-1]
    return f"write id {first} is aborted" if first == last else f"all write ids {first} to {last} are aborted"


def _open(reason: Reason) -> str:
    first, last = reason.ids[0], reason.ids[-1]
    return f"write id {first} is open" if first == last else f"no write id of {first} to {last} is committed"


def _open_below(reason: Reason) -> str:
    base, runs = reason.value("base"), reason.value("runs")
    if runs is None:
        return f"write id {reason.ids[0]} is open and a compaction up to {base} destroyed its history"
    verb = "is" if count_of(runs) == 1 else "are"
    return f"{write_ids_text(runs)} {verb} open, and a compaction up to {base} destroyed the history that a reader " + (
        f"without {'it' if count_of(runs) == 1 else 'them'} needs"
    )


def _unparseable(reason: Reason) -> str:
    if reason.by:
        return f"Hive fails on the name {reason.by[0]}, or reads it differently"
    if reason.ids:
        return f"its first write id {reason.ids[0]} is above its last {reason.ids[1]}"
    return f"{reason.value('why')}; Hive fails on it"


def _partly(reason: Reason) -> str:
    runs = reason.value("runs") or ()
    found = [of_status(runs, status) for status in (IdStatus.OPEN, IdStatus.ABORTED, IdStatus.ABOVE)]
    parts = [f"{write_ids_text(some)} ({status_text(some[0].status)})" for some in found if some]
    return f"read, less the rows of {', '.join(parts) or 'write ids that are not committed'}"


def _history(reason: Reason) -> str:
    first = str(reason.ids[0]) if reason.ids else "none"
    return (
        f"the oldest base {reason.by[0]} is a compaction that this snapshot may not use "
        f"(high watermark {reason.value('high_watermark')}, first uncommitted write id {first})"
    )


def _past(reason: Reason) -> str:
    runs = reason.value("missing")
    missing = f"no directory is left of {write_ids_text(runs)}" if runs else "original files may be missing"
    return (
        f"{reason.by[0]} took the place of what was before, and {missing}: cleaned, or never there, names do not tell"
    )


def _of_whom(reason: Reason) -> str:
    """Whose transaction it is, and since when it is open, as far as a metastore tells."""
    who, since, agent = reason.value("who"), reason.value("since"), reason.value("agent")
    more = [f"open since {utc(since)}" if since else "", agent or ""]
    shown = ", ".join(filter(None, more))
    return (f" of {who}" if who else "") + (f" ({shown})" if shown else "")


def _reader_holds(reason: Reason) -> str:
    txn, who, agent = reason.ids[0], reason.value("who"), reason.value("agent")
    if reason.value("how") == "queries":
        queries = "its queries may still need it"
        return f"transaction {txn}{_of_whom(reason)} is open: {queries}"
    held = f"held a lock on it{f' in transaction {txn}' if txn else ''}"
    what = f"had transaction {txn} open" if reason.value("how") == "no-lock" else held
    return f"{who} has {what} since before it became obsolete{f' ({agent})' if agent else ''}"


def _assumed(reason: Reason) -> str:
    age = reason.value("age")
    of = "" if reason.value("how") == "write-ids" else "of transactions "
    if age is None:
        given, counts = ("transaction", "_v directory") if of else ("write-id", "write id on disk")
        return f"no {given} list was given: every {counts} counts as committed"
    old = f"what is older than {duration(age)}" if age > 0 else "everything on disk"
    return f"assumed, since no list {of}was given: {'of _v directories ' if of else ''}{old} is committed"


def _stopped(reason: Reason) -> str:
    first = reason.ids[0]
    counted = "no write id" if first < 2 else f"no write id from {first} on"
    (why,) = reason.parts
    return f"{reason.by[0]} {_at_work(why)}, so {counted} counts as committed"


def _at_work(reason: Reason) -> str:
    """Return what shows that a writer may be at work in a directory, to follow its name."""
    ago = reason.value("ago") or 0
    return {
        "empty": "is empty: a writer may just have begun it",
        "manifest": "is a writer's manifest",
        "manifest-beside": f"has a writer's {reason.by[0]} beside it",
        "no-time": "has no time in its store",
        "open-stream": "is a streaming batch that was not closed",
        "young": f"was written {duration(ago)} ago" if ago >= 0 else "was written at a time that lies in the future",
    }[reason.value("how")]


def lost_events(rows: int | None, deletes: int | None, subject: str = "it") -> str:
    """Say which rows a compaction's result without a file lacks."""
    if rows is None or deletes is None:
        return f"{subject} has no file, and not all of what it replaced can be read"
    if not rows:
        return f"{subject} has no file, and what it replaced has {human_count(deletes, 'delete event')}"
    were = "was" if rows == 1 else "were"
    more = f", and it has {human_count(deletes, 'delete event')}" if deletes else ""
    return f"{subject} has no file, and {human_count(rows, 'row')} of what it replaced {were} never deleted{more}"


def _young(reason: Reason) -> str:
    since, until, how = utc(reason.value("since")), _may_go(reason.value("until")), reason.value("how")
    if how == "future":
        return f"its time, or that of what supersedes it, lies in the future ({since}): the clocks differ, {until}"
    return f"{'obsolete since' if how == 'obsolete' else 'last written'} {since}, {until}"


def _leftover(reason: Reason) -> str:
    since = reason.value("since")
    return f"the abandoned {reason.value('what')}" + ("" if since is None else f", last written {utc(since)}")


def _owner(reason: Reason) -> str:
    doing = "removes a stale lock" if reason.value("is_claim") else "works in it"
    owner, why = reason.value("owner"), reason.value("why")
    return f"{owner} {doing}" if owner else f"who {doing} cannot be read: {why}"


def _by_doubt(reason: Reason) -> str:
    return "; ".join(f"{part.by[0]}: {text_of(part)}" for part in reason.parts) or "only _v directories supersede it"


def _but(reason: Reason) -> str:
    return "only `acidctl clean --leftovers` takes it" + "".join(f", but {text_of(part)}" for part in reason.parts)


def _left_to_hive(reason: Reason) -> str:
    kind, since = reason.value("kind"), reason.value("since")
    if since is not None:
        return f"Hive's own cleaner began with it at {utc(since)}"
    return (
        f"it is not a compaction but {kind}"
        if kind
        else ("it has no highest write id: the metastore would forget too much")
    )


def _few_deltas(reason: Reason) -> str:
    deltas, limit, ratio = human_count(reason.value("deltas"), "delta"), reason.value("limit"), reason.value("ratio")
    if reason.value("how") == "min-deltas":
        return f"{deltas} < {limit} (--min-deltas)"
    share = "" if ratio is None else f", {ratio:.2f} of the base's bytes <= {reason.value('most'):g}"
    return f"{deltas} <= {limit}{share}"


def _more_above(reason: Reason) -> str:
    count, last = reason.value("count"), reason.value("high_watermark")
    more = human_count(count, "more directory", "more directories")
    return f"{more} above write id {last}, until what is open there ends"


def _above_given(reason: Reason) -> str:
    names, given = names_in_short(reason.by), reason.value("given")
    first = f"{names}: {reason.value('what')} {reason.ids[-1]} is on disk, and "
    first += f"{reason.value('server')} has given {f'none above {given}' if given else 'none'}"
    replica = " (the table is a replica: an unfinished replication may look like this on Hive 3)"
    older = "; the metastore is older than the files, or the files are of another table"
    return first + older + (replica if reason.value("is_replica") else "")


def _empty_files(reason: Reason) -> str:
    count = reason.value("count")
    if count == 1:
        return f"{reason.value('path')} has 0 bytes, and counts as a file without rows"
    return f"{count:,} files have 0 bytes, and count as files without rows; first: {reason.value('path')}"


# --- the table: code -> sentence -> what to do next ----------------------------------------------------------------


Sentence = str | Mapping[str, str] | Callable[[Reason], str]


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a code says to people.

    Attributes:
        sentence: a pattern for the values of a reason, patterns by its value ``how``, or a function that makes it.
        next_step: what to do where a reason of this code is in the way.
        example: a reason of this code. All examples tell of one table: its high watermark is 9, write ids 3 and 5 are
            open, and a compaction up to 5 ran in transaction 26.
    """

    sentence: Sentence
    next_step: str
    example: Reason


def _means(
    code: Code,
    sentence: str | Mapping[str, str] | Callable[[Reason], str],
    next_step: str,
    *parts: Reason,
    **values: Any,
) -> tuple[Code, Meaning]:
    return code, Meaning(sentence, next_step, reason(code, *parts, **values))


_OPEN = (IdRun(3, 3, IdStatus.OPEN), IdRun(5, 5, IdStatus.OPEN))
_AT = 1795451220.0
_UNTIL = 1795537620.0
_SERVER = "thrift://metastore:9083"
_BASE = "base_0000005"
_BASE_26 = "base_0000005_v0000026"
_DELTA = "delta_0000003_0000003"
_DELETES = "delete_delta_0000003_0000003_0000"

_NOTHING = "nothing"
_WAIT = "wait until its transaction has ended; it is read, or may be cleaned, then"
_GIVE_LISTS = "name a metastore, or give Hive's lists of both as --snapshot"
_CLEAN = "run `acidctl clean`: it takes what no reader may need any more"
_NEWER = "use a newer snapshot; `acidctl why` says which one can be read"
_MOVE = "see what wrote it, and move it out of the table by hand"
_FILES_ARE_NEWER = "stop all writers of the table, and find out what the metastore was restored from"
_SAY_TYPE = "give --table-type, or a metastore that knows the table, if it is a transactional table"
_OTHER_TABLE = "give the table itself, or move away what does not belong to this folder"
_VALIDATE = "run `acidctl validate`: it says what is wrong there, and what mends it"
_AGAIN = "run it again, with more time or bytes"
_ASK = "ask for a compaction with --major, if one is wanted all the same"
_HIVE = "leave it to Hive's own cleaner"

MEANINGS: Mapping[Code, Meaning] = dict((
    # verdicts
    _means(
        Code.ABOVE_GIVEN, _above_given, _FILES_ARE_NEWER,
        by=(_BASE, _DELTA), ids=(5,), what="write id", server=_SERVER, given=2,
    ),
    _means(
        Code.ABOVE_HIGH_WATERMARK, "write id {ids[0]} is above the high watermark {high_watermark}", _NEWER,
        ids=(10,), high_watermark=9,
    ),
    _means(
        Code.ADDS_NOTHING, "of its write ids none above {above} is committed", "wait until its write ids are decided",
        above=5,
    ),
    _means(
        Code.BESIDE_DIRECTORIES, "in an insert-only table Hive reads only what is in bases and deltas",
        "insert its rows again, by Hive, if they are missing",
    ),
    _means(
        Code.HIDDEN, lambda reason: _OWN.get(reason.value("name"), "hidden names are not data"),
        "nothing: `acidctl why` says what it is, and what clears it", name="_SUCCESS",
    ),
    _means(Code.LEFT_OUT, "it holds rows of newer write ids", "look at a later time to see its rows"),
    _means(Code.NOT_ENOUGH_HISTORY, _history, _NEWER, by=(_BASE,), ids=(3,), high_watermark=9),
    _means(
        Code.OPEN_BELOW_BASE, _open_below, "wait until these write ids are committed or aborted",
        ids=(3, 5), base=5, runs=_OPEN,
    ),
    _means(
        Code.ORIGINAL, "written before the table was ACID, and no base holds its rows yet",
        "nothing, or run `acidctl compact --major`: readers then open a base",
    ),
    _means(
        Code.ORIGINAL_WITHOUT_BUCKET,
        {
            "beside": "{path} is not named like a data file; readers ignore it because they use {by[0]}",
            "read": "{path} is not named like a data file: Hive tries to read it, and fails",
        },
        _MOVE, path="README.md", how="read",
    ),
    _means(Code.PARTITION, "a partition is a location of its own", "look at the partition itself"),
    _means(Code.PARTLY_COMMITTED, _partly, "wait until its open write ids are decided", ids=(3, 5), runs=_OPEN),
    _means(
        Code.PAST_NOT_PROVEN, _past, "look at a later time, or bring back what was cleaned with `acidctl restore`",
        by=(_BASE,), missing=_OPEN,
    ),
    _means(
        Code.SUPERSEDED_BY_BASE,
        {
            "base": "readers use {by[0]}",
            "delta": "its write ids are in {by[0]}",
            "original": "its rows are in {by[0]}",
            "zero": "write id 0 is before every delta",
        },
        _CLEAN, by=(_BASE,), how="delta",
    ),
    _means(Code.SUPERSEDED_BY_DELTA, "its write ids are in {by[0]}", _CLEAN, by=("delta_0000001_0000005",)),
    _means(
        Code.UNPARSEABLE, _unparseable, "see what wrote it, and rename or move it by hand",
        why="the prefix is Hive's but the numbers are not",
    ),
    _means(Code.VISIBILITY_ABORTED, "the compaction's transaction {ids[0]} is aborted", _CLEAN, ids=(26,)),
    _means(
        Code.VISIBILITY_OPEN,
        {
            "above": "transaction {ids[0]} is above the transactions this snapshot knows",
            "open": "transaction {ids[0]} is open",
        },
        _WAIT, ids=(26,), how="open",
    ),
    _means(Code.WRITE_ID_ABORTED, _aborted, _CLEAN, ids=(3, 5)),
    _means(Code.WRITE_ID_OPEN, _open, _WAIT, ids=(3, 5)),
    # notes
    _means(Code.ASSUMED_COMMITTED, _assumed, _GIVE_LISTS, how="write-ids"),
    _means(
        Code.COMPACTED_BELOW,
        "nothing above write id {ids[0]} is compacted: {by[0]} begins at or below write id {ids[1]} and ends above it",
        "compact again when the write ids below it are decided", by=("delta_0000003_0000007",), ids=(2, 4),
    ),
    _means(
        Code.EMPTY_FILES, _empty_files, "see whether their rows are elsewhere, and restore them if they were cut",
        count=12, path="base_0000005/bucket_00003",
    ),
    _means(
        Code.FROM_METASTORE,
        {
            "first": "what is committed is as the metastore {server} had it at {at}",
            "again": "what is committed is as the metastore {server} had it at {at}, asked again: a compaction or a "
            "cleaning overtook what it had said first",
        },
        _NOTHING, server=_SERVER, at="2026-11-23 16:27:00 UTC", how="first",
    ),
    _means(
        Code.GIVEN_UNKNOWN, "could not check whether the metastore is older than the files: {why}",
        "see why the metastore does not answer", why="the connection was refused",
    ),
    _means(
        Code.NOT_IN_METASTORE, "it is not a location of a transactional table of the metastore {server}",
        "give the metastore that knows the table, or Hive's lists", server=_SERVER,
    ),
    _means(
        Code.OBSOLETE_IS_READ,
        "rows of before a compaction are read from obsolete directories, which a cleaning may take any time",
        "copy what is needed before the next cleaning",
    ),
    _means(
        Code.PAST_MAY_LACK,
        lambda reason: (
            f"no directory is left of {write_ids_text(reason.value('missing'))}: rows that Hive has removed since then "
            "by DROP PARTITION, or Hive 3 by TRUNCATE, are missing here"
        ),
        "ask whether the table was truncated, or a partition was dropped, since then", missing=_OPEN,
    ),
    _means(
        Code.STOPPED_BY, _stopped, "wait until that writer has ended, or " + _GIVE_LISTS,
        reason(Code.WRITER_AT_WORK, by=("-tmp.delta_0000003_0000003_0000",), how="manifest-beside"),
        by=("delta_0000003_0000003_0000",), ids=(3,),
    ),
    # doubts
    _means(
        Code.EMPTY_BASE, "it is empty: Hive 3 shows an empty table, and Hive 4 ignores the directory",
        "see whether an INSERT OVERWRITE without rows wrote it; else move it away by hand",
    ),
    _means(
        Code.NOT_READABLE,
        {
            "bad-data": "{path} is not an ORC file that can be read: {why}",
            "error": "{path} cannot be read: {why}",
            "not-acid": "{path} has no ACID columns",
        },
        _VALIDATE, path="base_0000005/bucket_00000", how="not-acid",
    ),
    _means(Code.STRANGE_PATH, "{path} is not what, or not where, Hive puts it", _MOVE, path="base_0000005/README.md"),
    _means(
        Code.TRANSACTION_UNKNOWN,
        {
            "transaction": "whether transaction {ids[0]} is committed is not known",
            "overwrite": "whether the INSERT OVERWRITE of write id {ids[0]} is committed is not known",
        },
        _GIVE_LISTS, by=(_BASE_26,), ids=(26,), how="transaction",
    ),
    _means(
        Code.WRITER_AT_WORK, lambda reason: f"it {_at_work(reason)}", "wait until the writer has ended",
        by=("-tmp.delta_0000003_0000003_0000",), how="manifest-beside",
    ),
    # what a cleaning keeps back
    _means(
        Code.ABOVE_CLEANER, "what supersedes it reaches above the high watermark {high_watermark}",
        "give a newer --snapshot", high_watermark=9,
    ),
    _means(
        Code.HALF_A_MINOR,
        {
            "hides": "{by[0]} hides it but has no twin of its kind: a minor compaction may be half-finished",
            "holds": "it holds {by[0]}, the missing twin of {by[1]}: the events in it may be nowhere else",
        },
        "see what became of the minor compaction that wrote it", by=("delta_0000001_0000005",), how="hides",
    ),
    _means(
        Code.HIVE_COMPACTS,
        "the compaction {ids[0]} of Hive's queue began before it became obsolete, and is {state}",
        "wait until that compaction has ended", ids=(7,), state="working",
    ),
    _means(
        Code.INSERT_UNKNOWN,
        "whether the insert into {by[0]} was finished is not known: give --snapshot, or see to it by hand",
        "give --snapshot", by=(_DELTA,),
    ),
    _means(
        Code.LOST_ROWS, lambda reason: lost_events(reason.value("rows"), reason.value("deletes"), reason.by[0]),
        "run `acidctl repair`", by=(_BASE,), rows=12, deletes=0,
    ),
    _means(
        Code.NO_CLEANUP, "no_cleanup is set for the {who}", "set no_cleanup to false when nothing needs it any more",
        who="table",
    ),
    _means(Code.NOT_PLANNED, "the plan leaves it out", "plan again"),
    _means(
        Code.ONLY_BY_DOUBT, _by_doubt, _GIVE_LISTS,
        reason(Code.TRANSACTION_UNKNOWN, by=(_BASE_26,), ids=(26,), how="transaction"),
    ),
    _means(
        Code.OWNER_AT_WORK, _owner, "wait until that run has ended", owner="process 7 on this machine", is_claim=False,
    ),
    _means(
        Code.READER_HOLDS, _reader_holds, "wait until that query has ended; the metastore lists whose it is",
        ids=(26,), who="etl@host7", agent="hive_20261123162700_5d", how="lock",
    ),
    _means(
        Code.UNMARKED_BASE, "it may be a compaction of Hive 2, which marked none: its rows may be nowhere else",
        "see whether other directories hold its rows; then remove it by hand",
    ),
    # ages
    _means(
        Code.AGE_UNKNOWN, "its store gives no time, so its age is not known",
        "clean with --older-than 0 --unsafe-retention when nothing reads or writes the table",
    ),
    _means(Code.LEFTOVER, _leftover, "nothing: nobody works in it", what="staging of a compaction", since=_AT),
    _means(Code.TOO_YOUNG, _young, "wait until then, or set --older-than", since=_AT, until=_UNTIL, how="obsolete"),
    _means(
        Code.UNSAFE_PLAN,
        {
            "cleaner": "the state of the cleaner without the planned directories is another one",
            "new-reader": "the state of new readers without the planned directories is another one",
            "old-reader-reads": "a reader that began after {by[0]} was superseded may still read it",
            "old-reader": "a reader that is still running would read something else",
        },
        "report it with a listing of the location; nothing was removed", by=(_BASE,), how="old-reader-reads",
    ),
    # entries of Hive's queue
    _means(
        Code.COMMIT_UNKNOWN, "the metastore does not tell when, or before which transaction, it was committed", _HIVE,
    ),
    _means(
        Code.COMMITTED_LATELY, lambda reason: f"it was committed lately, {_may_go(reason.value('until'))}",
        "wait until then", until=_UNTIL,
    ),
    _means(
        Code.HIDES_ABORTED,
        "{by[0]} may hold rows of aborted writes, and the metastore would forget that they are",
        "run `acidctl compact --major`, which drops those rows", by=(_BASE,),
    ),
    _means(Code.LEFT_TO_HIVE, _left_to_hive, _HIVE, since=_AT),
    _means(Code.STILL_LEFT, "{by[0]} is still there", "clean it again; `acidctl why` says what keeps it", by=(_BASE,)),
    _means(
        Code.TRANSACTION_BELOW,
        "transaction {ids[0]} began before its compaction was committed, and is still open",
        "wait until that transaction has ended", ids=(25,),
    ),
    _means(
        Code.WRITES_UNDECIDED, "not every write up to {ids[0]} is known to be committed or aborted",
        "wait until these writes are decided", ids=(3,),
    ),
    # by what a location is known to be transactional, or why it is not
    _means(
        Code.BY_FILES,
        {
            "columns": "{path} has the ACID columns",
            "layout": "{path} is {format}, and all is named as Hive does",
            "side-file": "{by[0]} has {file}",
        },
        _NOTHING, by=(_BASE,), file="_orc_acid_version", how="side-file",
    ),
    _means(Code.EMPTY, "it is empty", "nothing, or look whether the path is the right one"),
    _means(
        Code.IN_METASTORE, "it is the {table_type} table {table} of the metastore", _NOTHING,
        table_type="full-acid", table="sales.orders",
    ),
    _means(
        Code.INSIDE_A_TABLE,
        {
            "below": "the directory above it has ACID directories of its own",
            "name": "its name is that of a directory inside of a table",
        },
        _OTHER_TABLE, how="below",
    ),
    _means(
        Code.NO_EVIDENCE,
        {
            "columns": "no file of {by[0]} and the others shows what Hive writes",
            "directories": "it has no base and no delta directory",
            "names": "{path} is not where or what Hive puts there",
        },
        _SAY_TYPE, how="directories",
    ),
    _means(
        Code.OTHER_FORMAT_BELOW, "{path}, which lies in it, is {what}", _OTHER_TABLE,
        path="metadata/v1.metadata.json", what="an Iceberg table",
    ),
    _means(Code.SAID, "it is said to be {table_type}", _NOTHING, table_type="full-acid"),
    _means(
        Code.TABLES_BELOW, "it is a folder of tables: {path} stands deeper in it", _OTHER_TABLE,
        path="orders/delta_0000003_0000003_0000",
    ),
    # what is left for another run
    _means(Code.BUDGET_IS_USED, "{bytes:,} bytes are more than is left of --max-bytes", _AGAIN, bytes=934),
    _means(
        Code.EXCLUDED, "the policy of {pattern} excludes its table", "change the policy if it should not",
        pattern="sales.*",
    ),
    _means(
        Code.OUT_OF_HOURS, "outside the window {window} (it is {now})", "run it again within the window",
        window="22:00-06:00", now="12:30",
    ),
    _means(Code.TIME_IS_UP, "the time is up, nothing was changed", _AGAIN),
    # whether a compaction is due, and whether there is work for one
    _means(Code.ASKED_FOR, "asked for", _NOTHING),
    _means(
        Code.AUTO_IS_OFF,
        {"asked": "no_auto_compaction is set", "owner": "no_auto_compaction is set for the {who}"},
        "compact it with `acidctl compact --major`, or unset the property", who="table", how="owner",
    ),
    _means(Code.DROPPED_MEANWHILE, "it was dropped meanwhile", "nothing"),
    _means(Code.FEW_DELTAS, _few_deltas, _ASK, deltas=4, limit=10, ratio=0.05, most=0.1),
    _means(
        Code.GIVEN_UP, "its last {count} compactions failed, the newest of them {entry}",
        "read the error of that entry, mend its cause, and request a compaction", count=3, entry=7,
    ),
    _means(Code.IN_QUEUE, "compaction {entry} of it is {state}", "wait until it has ended", entry=7, state="initiated"),
    _means(
        Code.IS_REPLICA, "the database {database} is replicated from another warehouse",
        "compact it where it is replicated from", database="sales",
    ),
    _means(
        Code.LAYOUT_REFUSED,
        lambda reason: f"cannot be compacted: {some_of([*map(text_of, reason.parts)], 3, '; ')}", _VALIDATE,
        reason(Code.ORIGINAL_WITHOUT_BUCKET, path="README.md", how="read"),
    ),
    _means(
        Code.MANY_DELTA_BYTES, "deltas are {ratio:.2f} of the base's bytes, limit {most:g}",
        "run `acidctl compact --major`",
        ratio=0.25, most=0.1,
    ),
    _means(
        Code.MANY_DELTAS,
        {
            "base": "{deltas} deltas, limit {limit}",
            "no-base": "{deltas} deltas, limit {limit}, and no base",
        },
        "run `acidctl compact`", deltas=12, limit=10, how="base",
    ),
    _means(Code.MORE_ABOVE, _more_above, "compact again when what is open there has ended", count=12, high_watermark=9),
    _means(Code.NO_DATA, "it holds no data", "nothing"),
    _means(
        Code.NOT_TRANSACTIONAL, lambda reason: f"{joined(reason.parts)}, but not known to be transactional", _SAY_TYPE,
        reason(Code.FEW_DELTAS, deltas=4, limit=10, ratio=0.05, most=0.1),
    ),
    _means(
        Code.NOTHING_TO_MERGE,
        {
            "base": "only a base is current",
            "each-kind": "one delta and one delete delta",
            "few": "fewer than two deltas are current",
            "single": "a single delta and no base",
        },
        "nothing: there is nothing to gain", how="base",
    ),
    _means(Code.OTHERS_GAIN_MORE, "{count} others gain more", "wait: its turn comes when they are done", count=12),
    # layouts that Hive never writes
    _means(
        Code.DEEP_DIRECTORY, "{path} lies in a folder: Hive 4 reads it, and Hive 3 passes over it or fails",
        _MOVE, path="old/delta_0000003_0000003_0000",
    ),
    _means(
        Code.DELETES_ARE_ROWS, "{by[0]} is a delete delta in an insert-only table: Hive reads its events as rows",
        _VALIDATE, by=(_DELETES,),
    ),
    _means(
        Code.MISPLACED_DELETES,
        "{path} holds deletes of rows of other buckets: Hive 4 looks for those only in files of these buckets, as"
        " Hive 3 does in a table with buckets", _VALIDATE, path="delete_delta_0000003_0000003_0000/bucket_00001",
    ),
    _means(
        Code.OVERLAP,
        {
            "ranges": "{by[0]} and {by[1]} overlap",
            "spelling": "{by[0]} and {by[1]} are the same directory spelled twice",
            "straddles": "{by[0]} begins below the end of {by[1]}, and ends above it: rows may be in both",
            "twins": "{by[0]} and {by[1]} hold the same write ids: Hive before 4.2 reads both and returns each row "
            "twice, and Hive 4.2 reads only the second",
        },
        _VALIDATE, by=("delta_0000003_0000006", "delta_0000005_0000008"), how="ranges",
    ),
    _means(
        Code.PARTITION_BESIDE,
        {
            "full-acid": "{path} lies beside other files: if the table has no partitions, Hive reads it, too",
            "insert-only": "{path} lies beside other files: if the table has no partitions, Hive 4 reads the bases and"
            " deltas in it, too",
        },
        _VALIDATE, path="dt=2026-11-23", how="full-acid",
    ),
    _means(
        Code.STRAY_FILE,
        {
            "beside": "in {by[0]} {file} stands beside bucket files, and has another name: Hive reads only the files"
            " without ids, or else only the bucket files",
            "beside-in-base": "in {by[0]} {file} stands beside bucket files, and has another name: Hive reads it if it"
            " has ids, and fails if not",
            "name": "{path} does not have a name that Hive gives to data files in {by[0]}",
            "nested": "{path} is nested in {by[0]}",
            "no-bucket": "{path} is not a bucket file, though its name begins like one",
            "second": "{path} and {other} are attempts at the same bucket",
        },
        _VALIDATE, by=(_BASE,), path="base_0000005/old/bucket_00000", how="nested",
    ),
    _means(
        Code.TYPE_ASSUMED,
        "{path} is read as a file of a full-ACID table; in an insert-only table Hive would not read it",
        "give --table-type", path="000000_0",
    ),
    _means(
        Code.UNPADDED_DELETES,
        {
            "directory": "Hive 3 fails on {by[0]}, and Hive 4 applies none of its deletes: Hive looks for {name}",
            "file": "Hive 4 makes another name of the numbers in {by[0]}, so it applies none of the deletes there, or"
            " fails, and Hive 3 applies them",
        },
        _VALIDATE, by=("delete_delta_3_3",), name="delete_delta_0000003_0000003", how="directory",
    ),
    # whether a cleaning takes a directory
    _means(
        Code.IS_READ,
        {
            "base": "the base that readers use",
            "committed": "committed",
            "newest": "the newest of {usable} usable bases",
            "read": "it is still being read",
        },
        _NOTHING, usable=2, how="newest",
    ),
    _means(
        Code.NOT_NEEDED,
        {"aborted": "no reader returns its rows", "obsolete": "new readers do not need it"}, _CLEAN, how="obsolete",
    ),
    _means(
        Code.NOT_OBSOLETE,
        {"kind": "cleaning takes nothing of its kind", "state": "it is neither obsolete nor aborted"},
        "nothing: a cleaning leaves it alone", how="state",
    ),
    _means(Code.ONLY_AS_LEFTOVER, _but, "run `acidctl clean --leftovers`"),
    _means(
        Code.REFUSED,
        {
            "error": "nothing here may be cleaned: {why}",
            "snapshot": "nothing is cleaned by a snapshot that is refused",
        },
        "do what the reason says, and clean again", why="the metastore is older than the files", how="error",
    ),
))  # fmt: skip
"""All codes, in the order of :class:`Code`."""


_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def human_bytes(count: int | None) -> str:
    """``1.5 MiB``; a dash for None."""
    if count is None:
        return "-"
    size = float(count)
    for unit in _UNITS:
        if size < 1024 or unit == _UNITS[-1]:
            return f"{int(size)} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    raise AssertionError
