"""English for people: the one place where sentences are made of the reasons that the rules and the planners give.

Nothing is decided here, and nothing is decided by what it says; programs go by :class:`acidctl.acid.reasons.Code`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache

from acidctl.acid.names import MINL, NO_STATEMENT, AcidDirectory, Kind, acid_directory
from acidctl.acid.reasons import Code, Reason
from acidctl.acid.writeids import IdRun, IdStatus, count_of, of_status
from acidctl.spelling import spelled

_SHORT_RUNS = 3
"""Ranges of one kind, where names are shortened."""
_SHOWN_RUNS = 12
"""Runs that a sentence names; a program has them all."""


def text_of(reason: Reason) -> str:
    """One sentence without a full stop."""
    sentence = _SENTENCES[reason.code]
    if callable(sentence):
        return spelled(sentence(reason))
    return spelled(sentence).format(by=reason.by, ids=reason.ids, **dict(reason.values))


def joined(reasons: Iterable[Reason]) -> str:
    """The sentences of several in one line."""
    return "; ".join(map(text_of, reasons))


def human_count(count: int, noun: str, plural: str | None = None) -> str:
    """``1 file``, ``1,234 files``."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def some_of(names: Sequence[str], most: int = 3, between: str = ", ") -> str:
    """The first of them, and how many more there are."""
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


def _write_ids(runs: Sequence[IdRun]) -> str:
    return f"write {'id' if count_of(runs) == 1 else 'ids'} {spans(runs)}"


def _range(first: int, last: int) -> str:
    return f"write {'id' if first == last else 'ids'} {span(first, last)}"


def _range_of(directory: AcidDirectory) -> str:
    return _range(directory.min_write_id, directory.max_write_id)


def status_text(status: IdStatus) -> str:
    """What is known of an id."""
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
    """A time of a record, as JSON has it; None for what no calendar has."""
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


# --- verdicts ------------------------------------------------------------------------------------------------------

_OWN = {
    ".acidctl-lock": "the lock of a run of acidctl",
    ".acidctl-trash": "what cleanings of acidctl took away",
    ".acidctl-backup": "what repairs of acidctl replaced",
}
"""What acidctl itself keeps hidden in a location."""


def _superseded(reason: Reason) -> str:
    if not reason.by:
        return "write id 0 is before every delta"
    texts = {"base": "readers use {}", "delta": "its write ids are in {}", "original": "its rows are in {}"}
    return texts[reason.value("kind")].format(reason.by[0])


def _stray(reason: Reason) -> str:
    path = reason.value("path")
    if reason.by:
        return f"{path} is not named like a data file; readers ignore it because they use {reason.by[0]}"
    return f"{path} is not named like a data file: Hive tries to read it, and fails"


def _chosen(reason: Reason) -> str:
    usable, reach = reason.value("usable"), reason.value("reach")
    text = f"the newest of {usable} usable bases" if usable > 1 else "the base that readers use"
    return text if reach is None else f"{text}: of those that this snapshot may use none reaches beyond {reach}"


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
    return f"{_write_ids(runs)} {verb} open, and a compaction up to {base} destroyed the history that a reader " + (
        f"without {'it' if count_of(runs) == 1 else 'them'} needs"
    )


def _unparseable(reason: Reason) -> str:
    if reason.ids:
        return f"its first write id {reason.ids[0]} is above its last {reason.ids[1]}"
    return f"{reason.value('why')}; Hive fails on it"


def _partly(reason: Reason) -> str:
    runs = reason.value("runs") or ()
    found = [of_status(runs, status) for status in (IdStatus.OPEN, IdStatus.ABORTED, IdStatus.ABOVE)]
    parts = [f"{_write_ids(some)} ({status_text(some[0].status)})" for some in found if some]
    return f"read, less the rows of {', '.join(parts) or 'write ids that are not committed'}"


def _history(reason: Reason) -> str:
    first = str(reason.ids[0]) if reason.ids else "none"
    return (
        f"the oldest base {reason.by[0]} is a compaction that this snapshot may not use "
        f"(high watermark {reason.value('high_watermark')}, first uncommitted write id {first})"
    )


def _past(reason: Reason) -> str:
    runs = reason.value("missing")
    missing = f"no directory is left of {_write_ids(runs)}" if runs else "original files may be missing"
    return (
        f"{reason.by[0]} took the place of what was before, and {missing}: cleaned, or never there, names do not tell"
    )


# --- assumptions and doubts ----------------------------------------------------------------------------------------


def _of_whom(reason: Reason) -> str:
    """Whose transaction it is, and since when it is open, as far as a metastore tells."""
    who, since, agent = reason.value("who"), reason.value("since"), reason.value("agent")
    more = [f"open since {utc(since)}" if since else "", agent or ""]
    shown = ", ".join(filter(None, more))
    return (f" of {who}" if who else "") + (f" ({shown})" if shown else "")


def _old_queries(reason: Reason) -> str:
    whose = _of_whom(reason)
    return f"transaction {reason.ids[0]}{whose} is open: its queries may not see the transaction of what supersedes it"


def _reader_holds(reason: Reason) -> str:
    inside = f" in transaction {reason.ids[0]}" if reason.ids[0] else ""
    agent = f" ({reason.value('agent')})" if reason.value("agent") else ""
    what = f"had transaction {reason.ids[0]} open" if reason.value("lockless") else f"held a lock on it{inside}"
    return f"{reason.value('who')} has {what} since before it became obsolete{agent}"


def _hive_compacts(reason: Reason) -> str:
    state = reason.value("state")
    return f"the compaction {reason.ids[0]} of Hive's queue began before it became obsolete, and is {state}"


def _auto_is_off(reason: Reason) -> str:
    who = reason.value("who")
    return f"no_auto_compaction is set for the {who}" if who else "no_auto_compaction is set"


def _old(reason: Reason) -> str:
    age = reason.value("age")
    return f"what is older than {duration(age)}" if age > 0 else "everything on disk"


def _stopped(reason: Reason) -> str:
    first = reason.ids[0]
    counted = "no write id" if first < 2 else f"no write id from {first} on"
    (why,) = reason.parts
    return f"{reason.by[0]} {_PREDICATES[why.code](why)}, so {counted} counts as committed"


def _written(reason: Reason) -> str:
    ago = reason.value("ago")
    return f"was written {duration(ago)} ago" if ago >= 0 else "was written at a time that lies in the future"


_PREDICATES: Mapping[Code, Callable[[Reason], str]] = {
    Code.EMPTY_BASE: lambda _: "is empty: Hive 3 shows an empty table, and Hive 4 ignores the directory",
    Code.EMPTY_DIRECTORY: lambda _: "is empty: a writer may just have begun it",
    Code.MANIFEST: lambda _: "is a writer's manifest",
    Code.NO_TIME: lambda _: "has no time in its store",
    Code.OPEN_STREAM: lambda _: "is a streaming batch that was not closed",
    Code.WRITER_BESIDE: lambda reason: f"has a writer's {reason.by[0]} beside it",
    Code.WRITTEN_LATELY: _written,
}
"""What is said of a directory that may be a writer's at work, to follow its name."""


def _unreadable(reason: Reason) -> str:
    path, why = reason.value("path"), reason.value("why")
    texts = {
        "bad-data": f"{path} is not an ORC file that can be read: {why}",
        "error": f"{path} cannot be read: {why}",
        "not-acid": f"{path} has no ACID columns",
    }
    return texts[reason.value("fault")]


# --- cleaning ------------------------------------------------------------------------------------------------------


def lost_events(rows: int | None, deletes: int | None, subject: str = "it") -> str:
    """Of a compaction's result without a file: what it lacks."""
    if rows is None or deletes is None:
        return f"{subject} has no file, and not all of what it replaced can be read"
    if not rows:
        return f"{subject} has no file, and what it replaced has {human_count(deletes, 'delete event')}"
    were = "was" if rows == 1 else "were"
    more = f", and it has {human_count(deletes, 'delete event')}" if deletes else ""
    return f"{subject} has no file, and {human_count(rows, 'row')} of what it replaced {were} never deleted{more}"


def _young(reason: Reason) -> str:
    since = utc(reason.value("since"))
    became = "obsolete since" if reason.value("is_obsolete") else "last written"
    return f"{became} {since}, {_may_go(reason.value('until'))}"


def _clocks(reason: Reason) -> str:
    since, until = utc(reason.value("since")), _may_go(reason.value("until"))
    return f"its time, or that of what supersedes it, lies in the future ({since}): the clocks differ, {until}"


def _leftover(reason: Reason) -> str:
    texts = {
        Code.QUERY_STAGING: "the abandoned staging of a query",
        Code.LOCK_CLAIM: "the claim of a run that was killed while it removed a stale lock",
        Code.INSERT_MANIFEST: "the abandoned manifest of an insert",
        Code.COMPACTION_STAGING: "the abandoned staging of a compaction",
    }
    since = reason.value("since")
    return texts[reason.value("what")] + ("" if since is None else f", last written {utc(since)}")


def _doing(reason: Reason) -> str:
    return "removes a stale lock" if reason.value("is_claim") else "works in it"


def _but(reason: Reason) -> str:
    return "only `clean(leftovers=True)` takes it" + "".join(f", but {text_of(part)}" for part in reason.parts)


# --- proofs --------------------------------------------------------------------------------------------------------


def _content(reason: Reason) -> str:
    files, size, newest = reason.value("files"), reason.value("bytes"), reason.value("newest")
    text = f"{files:,} {'file' if files == 1 else 'files'}, {size:,} bytes"
    return (
        text if newest is None else f"{text}, last changed {datetime.fromtimestamp(newest, UTC):%Y-%m-%d %H:%M:%S} UTC"
    )


def _events(reason: Reason) -> str:
    directory: AcidDirectory = reason.value("directory")
    text = f"what {_range_of(directory)} {'inserted' if directory.kind is Kind.DELTA else 'deleted'}"
    if directory.statement_id != NO_STATEMENT:
        text += f", statement {directory.statement_id}"
    return text + (", by a compaction" if reason.value("compacted") else "")


def _ids_of_name(reason: Reason) -> str:
    runs: tuple[IdRun, ...] = reason.value("runs")
    if reason.value("is_everything"):
        counted = span(runs[0].first, runs[-1].last)
        return f"{counted}, counted as committed: no list of write ids was given"
    by_status = {status: of_status(runs, status) for status in IdStatus}
    return "; ".join(f"{status_text(status)}: {spans(found)}" for status, found in by_status.items() if found)


def _transaction(reason: Reason) -> str:
    texts = {
        IdStatus.COMMITTED: "is committed",
        IdStatus.OPEN: "is open: its compaction is at work, or died a short while ago",
        IdStatus.ABORTED: "is aborted: its compaction failed",
        IdStatus.ABOVE: "is above the transactions this snapshot knows",
        IdStatus.UNKNOWN: "counts as committed: no list of transactions was given",
    }
    return f"transaction {reason.ids[0]} {texts[reason.value('status')]}"


def _not_chosen(reason: Reason) -> str:
    mine, reach = reason.value("mine"), reason.value("reach")
    own = "originals alone" if mine == MINL else f"write id {mine}"
    return f"{reason.by[0]} is read, which reaches write id {reach}; this one {own}"


def _held(reason: Reason) -> str:
    directory, wide, by = reason.value("directory"), reason.value("wide"), reason.by[0]
    what = _range_of(directory) if directory else "its rows"
    if wide and wide.max_write_id != MINL:
        ids = f"all up to write id {wide.max_write_id}" if wide.kind is Kind.BASE else _range_of(wide)
        by += f" ({ids}" + (f", transaction {wide.visibility_txn})" if wide.visibility_txn else ")")
    # An INSERT OVERWRITE holds nothing of what was there before it.
    return (
        f"{by} takes the place of {what}"
        if reason.value("replaced")
        else f"{by} holds {what}, and is read in its place"
    )


def _held_alone(reason: Reason) -> str:
    delta: AcidDirectory = reason.value("directory")
    one = delta.min_write_id == delta.max_write_id
    counts = ("counts" if one else "count") + " as" if reason.value("is_everything") else "is" if one else "are"
    return f"{_range_of(delta)} {counts} committed, and no base or wider delta that is read holds " + (
        "it" if one else "them"
    )


def _readable_by(reason: Reason) -> str:
    wid, txn = reason.value("write_id"), reason.value("txn")
    if wid == MINL:
        text = "every snapshot"
    elif reason.value("compacted"):
        text = f"a snapshot with a high watermark of {wid} or more, and no open write id up to {wid}"
    else:
        text = f"a snapshot in which write id {wid} is committed"
    return f"{reason.by[0] + ' ' if reason.by else ''}can be read by {text}" + (
        f", that knows transaction {txn} as committed" if txn else ""
    )


def _lists(reason: Reason) -> str:
    known = (f"{key}: {spans(reason.value(key)) or 'none'}" for key in ("open", "aborted"))
    return f"this snapshot has the high watermark {reason.value('high_watermark')}, {', '.join(known)}"


# --- what must happen next -----------------------------------------------------------------------------------------


def _clean_command(reason: Reason) -> str:
    return f"`clean({'leftovers=True' if reason.value('leftovers') else ''})`"


def _after_queries(reason: Reason) -> str:
    txn, reach = reason.value("txn"), reason.value("reach")
    queries = "queries that began " + ("earlier" if not reason.by else f"before {reason.by[0]} was there")
    if txn:
        queries = f"queries that began before transaction {txn} was committed"
    elif reach is not None:
        queries += f", or while a write id up to {reach} was open,"
    return f"`clean()` takes it; let {queries} end first"


def _aborted_inside(reason: Reason) -> str:
    runs = reason.value("runs")
    return f"a major compaction first: {_write_ids(runs)} {'is' if count_of(runs) == 1 else 'are'} aborted inside"


_DECIDED = "must be committed or aborted"


def _few_deltas(reason: Reason) -> str:
    ratio, most = reason.value("ratio"), reason.value("most")
    share = "" if ratio is None else f", {ratio:.2f} of the base's bytes <= {most:g}"
    return f"{_deltas(reason)} <= {reason.value('limit')}{share}"


def _many_deltas(reason: Reason) -> str:
    return f"{_deltas(reason)}, limit {reason.value('limit')}"


def _deltas(reason: Reason) -> str:
    count = reason.value("deltas")
    return f"{count} delta{'' if count == 1 else 's'}"


def _more_above(reason: Reason) -> str:
    count, last = reason.value("count"), reason.value("high_watermark")
    more = human_count(count, "more directory", "more directories")
    return f"{more} above write id {last}, until what is open there ends"


def _above_given(reason: Reason, what: str) -> str:
    names, given = names_in_short(reason.by), reason.value("given")
    first = f"{names}: {what} {reason.ids[-1]} is on disk, and "
    first += f"{reason.value('server')} has given {f'none above {given}' if given else 'none'}"
    replica = " (the table is a replica: an unfinished replication may look like this on Hive 3)"
    older = "; the metastore is older than the files, or the files are of another table"
    return first + older + (replica if reason.value("is_replica") else "")


def _empty_files(reason: Reason) -> str:
    count = reason.value("count")
    if count == 1:
        return f"{reason.value('path')} has 0 bytes, and counts as a file without rows"
    return f"{count:,} files have 0 bytes, and count as files without rows; first: {reason.value('path')}"


def _nothing_to_merge(reason: Reason) -> str:
    count = reason.value("deltas")
    return f"{count or 'no'} current delta{'' if count == 1 else 's'}"


_SENTENCES: Mapping[Code, str | Callable[[Reason], str]] = {
    # verdicts
    Code.ABOVE_GIVEN: lambda reason: _above_given(reason, "write id"),
    Code.ABOVE_HIGH_WATERMARK: "write id {ids[0]} is above the high watermark {high_watermark}",
    Code.ADDS_NOTHING: "of its write ids none above {above} is committed",
    Code.BESIDE_DIRECTORIES: "in an insert-only table Hive reads only what is in bases and deltas",
    Code.CHOSEN_BASE: _chosen,
    Code.COMMITTED: "committed",
    Code.HIDDEN: lambda reason: _OWN.get(reason.value("name"), "hidden names are not data"),
    Code.LEFT_OUT: "it holds rows of newer write ids",
    Code.NOT_ENOUGH_HISTORY: _history,
    Code.OPEN_BELOW_BASE: _open_below,
    Code.ORIGINAL: "written before the table was ACID, and no base holds its rows yet",
    Code.ORIGINAL_WITHOUT_BUCKET: _stray,
    Code.PARTITION: "a partition is a location of its own",
    Code.PARTLY_COMMITTED: _partly,
    Code.PAST_NOT_PROVEN: _past,
    Code.SUPERSEDED_BY_BASE: _superseded,
    Code.SUPERSEDED_BY_DELTA: _superseded,
    Code.UNPARSEABLE: _unparseable,
    Code.VISIBILITY_ABOVE_GIVEN: lambda reason: _above_given(reason, "transaction"),
    Code.VISIBILITY_ABORTED: "the compaction's transaction {ids[0]} is aborted",
    Code.VISIBILITY_OPEN: lambda reason: (
        f"transaction {reason.ids[0]} is "
        + ("above the transactions this snapshot knows" if reason.value("is_above") else "open")
    ),
    Code.WRITE_ID_ABORTED: _aborted,
    Code.WRITE_ID_OPEN: _open,
    # notes
    Code.ALL_TRANSACTIONS_COUNT: "no transaction list was given: every _v directory counts as committed",
    Code.ALL_WRITE_IDS_COUNT: "no write-id list was given: every write id on disk counts as committed",
    Code.COMPACTED_BELOW: (
        "nothing above write id {ids[0]} is compacted: {by[0]} begins at or below write id {ids[1]} and ends above it"
    ),
    Code.EMPTY_FILES: _empty_files,
    Code.PAST_MAY_LACK: lambda reason: (
        f"no directory is left of {_write_ids(reason.value('missing'))}: rows that Hive has removed since then by DROP "
        "PARTITION, or Hive 3 by TRUNCATE, are missing here"
    ),
    Code.OBSOLETE_IS_READ: (
        "rows of before a compaction are read from obsolete directories, which a cleaning may take any time"
    ),
    Code.GIVEN_UNKNOWN: "could not check whether the metastore is older than the files: {why}",
    Code.FROM_METASTORE: "what is committed is as the metastore {server} had it at {at}",
    Code.FROM_METASTORE_AGAIN: (
        "what is committed is as the metastore {server} had it at {at}, asked again: a compaction or a cleaning "
        "overtook what it had said first"
    ),
    Code.NOT_IN_METASTORE: "it is not a location of a transactional table of the metastore {server}",
    Code.OLD_COUNTS: lambda reason: f"assumed, since no list was given: {_old(reason)} is committed",
    Code.OLD_TRANSACTIONS_COUNT: lambda reason: (
        f"assumed, since no list of transactions was given: of _v directories {_old(reason)} is committed"
    ),
    Code.STOPPED_BY: _stopped,
    # doubts
    **dict.fromkeys(_PREDICATES, lambda reason: f"it {_PREDICATES[reason.code](reason)}"),
    Code.INSERT_OVERWRITE_UNKNOWN: "whether the INSERT OVERWRITE of write id {ids[0]} is committed is not known",
    Code.NOT_READABLE: _unreadable,
    Code.STRANGE_PATH: "{path} is not what, or not where, Hive puts it",
    Code.TRANSACTION_UNKNOWN: "whether transaction {ids[0]} is committed is not known",
    # kept back
    Code.ABOVE_CLEANER: "what supersedes it reaches above the high watermark {high_watermark}",
    Code.HALF_A_MINOR: "{by[0]} hides it but has no twin of its kind: a minor compaction may be half-finished",
    Code.HIVE_COMPACTS: _hive_compacts,
    Code.HOLDS_TWIN: "it holds {by[0]}, the missing twin of {by[1]}: the events in it may be nowhere else",
    Code.INSERT_UNKNOWN: (
        "whether the insert into {by[0]} was finished is not known: give `write_ids`, or see to it by hand"
    ),
    Code.LOST_ROWS: lambda reason: lost_events(reason.value("rows"), reason.value("deletes"), reason.by[0]),
    Code.NOT_PLANNED: "the plan leaves it out",
    Code.READER_HOLDS: _reader_holds,
    Code.NO_CLEANUP: "no_cleanup is set for the {who}",
    Code.OLD_QUERIES: _old_queries,
    Code.ONLY_BY_DOUBT: lambda reason: "; ".join(f"{part.by[0]}: {text_of(part)}" for part in reason.parts),
    Code.ONLY_BY_TRANSACTIONS: "only _v directories supersede it",
    Code.OWNER_AT_WORK: lambda reason: f"{reason.value('owner')} {_doing(reason)}",
    Code.OWNER_UNKNOWN: lambda reason: f"who {_doing(reason)} cannot be read: {reason.value('why')}",
    Code.UNMARKED_BASE: "it may be a compaction of Hive 2, which marked none: its rows may be nowhere else",
    # ages
    Code.AGE_UNKNOWN: "its store gives no time, so its age is not known",
    Code.CLOCKS_DIFFER: _clocks,
    Code.LEFTOVER: _leftover,
    Code.TOO_YOUNG: _young,
    # broken plans
    Code.CLEANER_SEES_OTHER: "the state of the cleaner without the planned directories is another one",
    Code.NEW_READER_SEES_OTHER: "the state of new readers without the planned directories is another one",
    Code.OLD_READER_MAY_READ: "a reader that began after {by[0]} was superseded may still read it",
    Code.OLD_READER_SEES_OTHER: "a reader that is still running would read something else",
    # entries of the metastore's queue
    Code.COMMIT_UNKNOWN: "the metastore does not tell when, or before which transaction, it was committed",
    Code.COMMITTED_LATELY: lambda reason: f"it was committed lately, {_may_go(reason.value('until'))}",
    Code.HIDES_ABORTED: "{by[0]} may hold rows of aborted writes, and the metastore would forget that they are",
    Code.HIVE_CLEANS: lambda reason: f"Hive's own cleaner began with it at {utc(reason.value('since'))}",
    Code.NO_HIGHEST_WRITE_ID: "it has no highest write id: the metastore would forget too much",
    Code.NOT_A_COMPACTION: "it is not a compaction but {kind}",
    Code.STILL_LEFT: "{by[0]} is still there",
    Code.TRANSACTION_BELOW: "transaction {ids[0]} began before its compaction was committed, and is still open",
    Code.WRITES_UNDECIDED: "not every write up to {ids[0]} is known to be committed or aborted",
    # layouts
    Code.DELETES_ARE_ROWS: "{by[0]} is a delete delta in an insert-only table: Hive reads its events as rows",
    Code.PARTITION_BESIDE: "{path} lies beside other files: if the table has no partitions, Hive reads it, too",
    Code.UNPADDED_DELETES: "Hive 3 fails on {by[0]}, and Hive 4 applies none of its deletes: Hive looks for {name}",
    Code.REFUSED_NAME: "Hive fails on the name {by[0]}, or reads it differently",
    Code.NOT_HIVES_NAME: "{path} does not have a name that Hive gives to data files in {by[0]}",
    Code.TYPE_ASSUMED: "{path} is read as a file of a full-ACID table; in an insert-only table Hive would not read it",
    Code.BESIDE_BUCKET_FILES: "in {by[0]} {file} stands beside bucket files, and has another name",
    Code.NESTED_FILE: "{path} is nested in {by[0]}",
    Code.NOT_A_BUCKET_FILE: "{path} is not a bucket file, though its name begins like one",
    Code.OVERLAP: "{by[0]} and {by[1]} overlap",
    Code.SECOND_ATTEMPT: "{path} and {other} are attempts at the same bucket",
    Code.SPELLED_TWICE: "{by[0]} and {by[1]} are the same directory spelled twice",
    Code.TWINS: (
        "{by[0]} and {by[1]} hold the same write ids: Hive before 4.2 reads both and returns each row twice, and "
        "Hive 4.2 reads only the second"
    ),
    Code.STRADDLES_BASE: "{by[0]} begins below the end of {by[1]}, and ends above it: rows may be in both",
    # whether a cleaning takes it
    Code.IS_READ: "readers of this snapshot read it",
    Code.NEITHER_OBSOLETE_NOR_ABORTED: "it is neither obsolete nor aborted",
    Code.NO_READER_RETURNS: "no reader returns its rows",
    Code.NOT_NEEDED: "new readers do not need it",
    Code.ONLY_AS_LEFTOVER: _but,
    Code.OTHER_KIND: "cleaning takes nothing of its kind",
    Code.REFUSED: "nothing here may be cleaned: {why}",
    Code.SNAPSHOT_REFUSED: "nothing is cleaned by a snapshot that is refused",
    # what must happen next
    Code.AS_TOLD: "{hint}",
    Code.CLEAN: lambda reason: (
        f"{_clean_command(reason)} takes it{'' if reason.value('leftovers') else ' at any time'}"
    ),
    Code.CLEAN_AFTER_QUERIES: _after_queries,
    Code.CLEAN_BY_FORCE: lambda reason: (
        f"{_clean_command(reason)} takes it with `older_than=0` `unsafe_retention`: when nothing reads or writes the "
        "table"
    ),
    Code.CLEAN_THEN: lambda reason: f"{_clean_command(reason)} takes it then",
    Code.COMPACT_ABORTED: _aborted_inside,
    Code.COMPACT_EVENTS: "a compaction first: it writes these events to a wider delta or a base",
    Code.BRING_ROWS_BACK: (
        "run `repair('empty-result')`: it takes {by[0]} away, so that readers see this again, or says why it cannot"
    ),
    Code.COMPACT_NEWER_BASE: "a major compaction first: its newer base takes the place of this one",
    Code.COMPACT_ORIGINALS: "a major compaction first: no base holds these rows yet",
    Code.DECIDE_THEN_COMPACT: lambda reason: f"{_write_ids(reason.value('runs'))} {_DECIDED}, then a compaction",
    Code.DECIDE_TRANSACTION: "transaction {ids[0]} must be committed (then it is read) or aborted",
    Code.DECIDE_WRITE_IDS: lambda reason: f"{_write_ids(reason.value('runs'))} {_DECIDED}",
    Code.EXPLAIN_PARTITION: "it is a location of its own: run `why()` on {by[0]}",
    Code.FIND_MISSING_TWIN: (
        "the missing twin of {by[0]} first: see what became of the minor compaction that wrote it"
    ),
    Code.FINISH_PUBLICATION: "run `compact()`: it finishes the publication that was interrupted",
    Code.GIVE_TRANSACTIONS: "give `valid_txns`, or `assume_committed` when no compaction is at work",
    Code.GIVE_WRITE_IDS: "give a newer `write_ids`",
    Code.MOVE_STRANGER: "see whose file that is, and move it away",
    Code.NEEDS_WIDER: "a base or a wider delta that reaches write id {ids[0]} first",
    Code.NEWER_SNAPSHOT: "a newer snapshot, with a high watermark of {ids[0]} or more: this one ends before it",
    Code.RENAME: "Hive fails on this name: see what wrote it, and rename or move it by hand",
    Code.SEEK_ROWS: "see whether other directories hold its rows; then remove it by hand",
    Code.ALLOW_CLEANUP: "set no_cleanup to false there when nothing needs it any more",
    Code.WAIT_FOR_HIVE: "wait until that compaction has ended: Hive's own cleaner looks at this, too",
    Code.WAIT_FOR_TRANSACTION: "wait until that transaction has ended, as the metastore, or a newer `valid_txns`, says",
    Code.WAIT_FOR_WRITER: "wait until the writer has ended, or give `write_ids`",
    # what is hidden in a location, and what clears it
    Code.BACKUP: "what earlier repairs replaced",
    Code.COMPACTION_STAGING: "the staging of a compaction, at work or dead",
    Code.INSERT_MANIFEST: "the manifest of a direct insert into {target}, at work or dead",
    Code.LOCK: "the lock of a run of acidctl that changes the location",
    Code.LOCK_CLAIM: "the claim of a run that removes a stale lock",
    Code.QUERY_STAGING: "the staging of a query of Hive's, at work or dead",
    Code.SCRATCH: "scratch of a writer, at work or dead",
    Code.TRASH: "what earlier cleaning runs took away",
    Code.CLEAR_BACKUP: "`forget_repair()` deletes it for good",
    Code.CLEAR_COMPACTION_STAGING: (
        "the next `compact()` removes what a dead one of this machine left; Hive's, and those of other machines, "
        "are removed by hand when no compaction is at work"
    ),
    Code.CLEAR_INSERT_MANIFEST: "the insert removes it; when none is at work, remove it by hand",
    Code.CLEAR_LOCK: (
        "it goes when that run ends; the next one takes it over when its process has died on the same machine, and "
        "`break_lock` removes that of another machine"
    ),
    Code.CLEAR_LOCK_CLAIM: "it goes at once; `clean(leftovers=True)` if not",
    Code.CLEAR_QUERY_STAGING: "when no query of that time runs, remove it by hand",
    Code.CLEAR_SCRATCH: "when no writer is at work, remove it by hand",
    Code.CLEAR_TRASH: "`purge()` deletes it for good",
    # steps of proofs
    Code.BASE_OF_ORIGINALS: "a base made of original files alone",
    Code.COMPACTED_BASE: "a base: all rows up to write id {ids[0]}, by a compaction",
    Code.CONTENT: _content,
    Code.EVENTS: _events,
    Code.HELD_BY: _held,
    Code.HELD_BY_NO_OTHER: _held_alone,
    Code.LATER_BASE: "{by[0]} is read, the later compaction of two up to {ids[0]}",
    Code.LISTS: _lists,
    Code.NOT_ACID: "not a directory of Hive's ACID layout",
    Code.NOT_CHOSEN: _not_chosen,
    Code.OTHER_OF_SAME_END: (
        "{by[0]} is read, as of two bases up to {ids[0]} a compaction comes before an INSERT OVERWRITE"
    ),
    Code.PRE_ACID_ROWS: "rows that were there before the table was ACID",
    Code.READABLE_BY: _readable_by,
    Code.READ_BUT_REFUSED: lambda reason: f"{joined(reason.parts)}; but Hive refuses this snapshot: not enough history",
    Code.STRADDLES: lambda reason: (
        f"it is read whole, as it reaches beyond {reason.by[0]}; but that has {_range(*reason.ids)} too (rule V9)"
    ),
    Code.TRANSACTION: _transaction,
    Code.UNMARKED: (
        "a base without the mark of a compaction: an INSERT OVERWRITE of write id {ids[0]}, or a compaction of Hive 2"
    ),
    Code.WRITE_IDS: _ids_of_name,
    # whether it is known to be transactional
    Code.ACID_COLUMNS: "{path} has the ACID columns",
    Code.EMPTY: "it is empty",
    Code.INSERT_ONLY_LAYOUT: "{path} is {format}, and all is named as Hive does",
    Code.NO_ACID_COLUMNS: "no file of {by[0]} and the others shows what Hive writes",
    Code.NO_ACID_DIRECTORIES: "it has no base and no delta directory",
    Code.OTHER_FORMAT_BELOW: "{path}, which lies in it, is {what}",
    Code.OTHER_NAMES: "{path} is not where or what Hive puts there",
    Code.INSIDE_A_TABLE: "the directory above it has ACID directories of its own",
    Code.PART_OF_A_TABLE: "its name is that of a directory inside of a table",
    Code.IN_METASTORE: "it is the {table_type} table {table} of the metastore",
    Code.SAID: "it is said to be {table_type}",
    Code.SIDE_FILE: "{by[0]} has {file}",
    Code.TABLES_BELOW: "it is a folder of tables: {path} stands deeper in it",
    # left for another run
    Code.BUDGET_IS_USED: "{bytes:,} bytes are more than is left of `max_bytes`",
    Code.EXCLUDED: "the policy of {pattern} excludes its table",
    Code.OUT_OF_HOURS: "outside the window {window} (it is {now})",
    Code.DROPPED_MEANWHILE: "it was dropped meanwhile",
    Code.TIME_IS_UP: "the time is up, nothing was changed",
    # whether to compact
    Code.ASKED_FOR: "asked for",
    Code.AUTO_IS_OFF: _auto_is_off,
    Code.FEW_DELTAS: _few_deltas,
    Code.FEWER_THAN_ASKED: lambda reason: f"{_deltas(reason)} < {reason.value('limit')}, the `min_deltas`",
    Code.GIVEN_UP: "its last {count} compactions failed, the newest of them {entry}",
    Code.IN_QUEUE: "compaction {entry} of it is {state}",
    Code.IS_REPLICA: "the database {database} is replicated from another warehouse",
    Code.MANY_ABORTED: "{count} aborted transactions, limit {limit}",
    Code.MANY_DELTAS: _many_deltas,
    Code.MANY_DELTAS_AND_NO_BASE: lambda reason: f"{_many_deltas(reason)}, and no base",
    Code.MANY_DELTAS_AND_NO_MINOR: lambda reason: (
        f"{_many_deltas(reason)}, and a minor compaction is not supported here"
    ),
    Code.MANY_DELTA_BYTES: "deltas are {ratio:.2f} of the base's bytes, limit {most:g}",
    Code.MORE_ABOVE: _more_above,
    Code.LAYOUT_REFUSED: lambda reason: f"cannot be compacted: {some_of([*map(text_of, reason.parts)], 3, '; ')}",
    Code.NO_DATA: "it holds no data",
    Code.NOTHING_TO_MERGE: _nothing_to_merge,
    Code.NOT_TRANSACTIONAL: lambda reason: f"{joined(reason.parts)}, but not known to be transactional",
    Code.OBSOLETE_BASE_ALONE: "no deltas, but an obsolete base",
    Code.ONE_OF_EACH_KIND: "one delta and one delete delta",
    Code.ONLY_A_BASE: "only a base is current",
    Code.OTHERS_GAIN_MORE: "{count} others gain more",
    Code.SINGLE_DELTA: "a single delta and no base",
}


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
