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
    sentence = meanings()[reason.code].sentence
    if callable(sentence):
        return sentence(reason)
    values = dict(reason.values)
    pattern = sentence if isinstance(sentence, str) else sentence[values["how"]]
    return pattern.format(by=reason.by, ids=reason.ids, **values)


def next_step(code: Code) -> str:
    """Return what to do where a reason of this code is in the way."""
    return meanings()[code].next_step


def example(code: Code) -> Reason:
    """Return a reason of this code with the values that its sentence names."""
    return _example(code, **meanings()[code].example)


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


def _past_may_lack(reason: Reason) -> str:
    return (
        f"no directory is left of {write_ids_text(reason.value('missing'))}: rows that Hive has removed since then by "
        "DROP PARTITION, or Hive 3 by TRUNCATE, are missing here"
    )


def _of_whom(reason: Reason) -> str:
    """Return the owner and the beginning of the transaction, if a metastore says them."""
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


_MADE: Mapping[Code, Callable[[Reason], str]] = {
    Code.ABOVE_GIVEN: _above_given,
    Code.ASSUMED_COMMITTED: _assumed,
    Code.COMMITTED_LATELY: lambda reason: f"it was committed lately, {_may_go(reason.value('until'))}",
    Code.EMPTY_FILES: _empty_files,
    Code.FEW_DELTAS: _few_deltas,
    Code.HIDDEN: lambda reason: _OWN.get(reason.value("name"), "hidden names are not data"),
    Code.LAYOUT_REFUSED: lambda reason: f"cannot be compacted: {some_of([*map(text_of, reason.parts)], 3, '; ')}",
    Code.LEFTOVER: _leftover,
    Code.LEFT_TO_HIVE: _left_to_hive,
    Code.LOST_ROWS: lambda reason: lost_events(reason.value("rows"), reason.value("deletes"), reason.by[0]),
    Code.MORE_ABOVE: _more_above,
    Code.NOT_ENOUGH_HISTORY: _history,
    Code.NOT_TRANSACTIONAL: lambda reason: f"{joined(reason.parts)}, but not known to be transactional",
    Code.ONLY_AS_LEFTOVER: lambda reason: ", but ".join(
        ("only `acidctl clean --leftovers` takes it", *map(text_of, reason.parts))
    ),
    Code.ONLY_BY_DOUBT: lambda reason: (
        "; ".join(f"{part.by[0]}: {text_of(part)}" for part in reason.parts) or "only _v directories supersede it"
    ),
    Code.OPEN_BELOW_BASE: _open_below,
    Code.OWNER_AT_WORK: _owner,
    Code.PARTLY_COMMITTED: _partly,
    Code.PAST_MAY_LACK: _past_may_lack,
    Code.PAST_NOT_PROVEN: _past,
    Code.READER_HOLDS: _reader_holds,
    Code.STOPPED_BY: _stopped,
    Code.TOO_YOUNG: _young,
    Code.UNPARSEABLE: _unparseable,
    Code.WRITER_AT_WORK: lambda reason: f"it {_at_work(reason)}",
    Code.WRITE_ID_ABORTED: _aborted,
    Code.WRITE_ID_OPEN: _open,
}
"""The sentences that a function makes; ``wording.json`` has a pattern for each other code."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """The meaning of a code, for people.

    Attributes:
        sentence: a pattern for the values of a reason, patterns by its value ``how``, or a function that makes it.
        next_step: what to do where a reason of this code is in the way.
        example: the values of a reason of this code. All examples are about one table: its high watermark is 9, write
            ids 3 and 5 are open, and a compaction up to 5 ran in transaction 26.
    """

    sentence: str | Mapping[str, str] | Callable[[Reason], str]
    next_step: str
    example: Mapping[str, Any]


@lru_cache
def meanings() -> Mapping[Code, Meaning]:
    """Return the meaning of every code, in the order of :class:`Code`, from ``wording.json``."""
    import json  # noqa: PLC0415 - --help makes no sentences
    from pkgutil import get_data  # noqa: PLC0415 - as above; it finds the file in the zip of an executor, too

    table = json.loads(get_data(__package__, "wording.json") or b"")
    return {
        code: Meaning(_MADE.get(code) or item["sentence"], item["next"], item.get("example", {}))
        for code, item in ((code, table[code]) for code in Code)
    }


def _example(code: str, parts: Sequence[dict[str, Any]] = (), **values: Any) -> Reason:
    """Return the reason that an object of ``wording.json`` stands for."""
    for name in ("by", "ids"):
        values[name] = tuple(values.get(name, ()))
    for name in {"runs", "missing"} & values.keys():
        values[name] = tuple(IdRun(first, last, IdStatus(status)) for first, last, status in values[name])
    return reason(Code(code), *(_example(**part) for part in parts), **values)


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
