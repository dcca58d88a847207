"""Removal that can be undone: planned entries move into a hidden directory of the location.

Each cleaning is a run of the journal, ``<location>/.acidctl-trash/<time>-<id>/``, with the same id in all locations.
Its note is written before the first entry moves, and renamed before the first one is deleted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from acidctl.acid.listing import Entry
from acidctl.acid.reasons import Code
from acidctl.acid.writeids import ValidTxns, ValidWriteIds
from acidctl.base.errors import ConflictError, NotFoundError
from acidctl.base.printable import one_line
from acidctl.location.change import journal
from acidctl.location.change.journal import (
    MANIFEST,
    Act,
    Run,
    RunState,
    Step,
    begin,
    drop,
    mark,
    take_back,
    unusable,
    write,
)
from acidctl.location.change.own_files import TORN, new_run_id
from acidctl.location.snapshot import Snapshot, take_snapshot
from acidctl.storage.port import FileSystem

TRASH = ".acidctl-trash"


@dataclass(frozen=True, slots=True)
class TrashRun(Run):
    """One cleaning run in the trash of a location; its steps are in the order of removal.

    Attributes:
        content: a digest of the entries' files; empty if it is not known.
        write_ids, txns: the lists of the plan, as Hive's strings; None if none were given.
        states: the state of every visible entry before the run, by name; empty if it is not known.
    """

    __repr__ = one_line

    folder: ClassVar[str] = TRASH

    content: str = ""
    write_ids: str | None = None
    txns: str | None = None
    states: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, snapshot: Snapshot, names: tuple[str, ...], size: int, run_id: str = "") -> TrashRun:
        """Return a new run that takes these names from a location."""
        run = cls(
            snapshot.path,
            run_id or new_run_id(),
            bytes=size,
            state=RunState.WRITTEN,
            content=_content(snapshot.listing.entries, names),
            write_ids=None if snapshot.write_ids.is_everything else str(snapshot.write_ids),
            txns=None if snapshot.txns is None else str(snapshot.txns),
            states=_states(snapshot),
        )
        return replace(run, steps=_steps(run, names))

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the entries that it took."""
        return tuple(step.source for step in self.steps)

    def write_note(self, fs: FileSystem) -> None:
        """Make the run's directory with its note."""
        begin(fs, self)
        note = {"names": self.names, "bytes": self.bytes, "content": self.content, "states": self.states}
        write(fs, self, {**note, "writeIds": self.write_ids, "validTxns": self.txns})

    def drop_unused(self, fs: FileSystem) -> None:
        """Remove the run's directory if nothing moved into it; it stays if something did after all."""
        if {entry.path for entry in fs.list_dir(self.path).entries} - {MANIFEST, TORN}:
            return
        for name in (TORN, MANIFEST):
            with suppress(NotFoundError):
                fs.remove_tree(f"{self.path}/{name}")
        fs.remove_empty(self.path)
        if fs.exists(self.path):  # a move came late, after its answer was lost
            self.write_note(fs)
        else:
            fs.remove_empty(f"{self.location}/{TRASH}")


def _steps(run: TrashRun, names: Iterable[str]) -> tuple[Step, ...]:
    return tuple(Step(Act.MOVE, name, f"{run.relative}/{name}") for name in names)


def trash_runs(fs: FileSystem, location: str, names: Collection[str] | None = None) -> list[TrashRun]:
    """Return the runs in a location's trash, oldest first; the state of each shows if it can be used.

    Args:
        names: the children of the location, if they were just listed.
    """
    return journal.list_runs(fs, location, TrashRun, _parsed, names)


def _parsed(run: TrashRun, note: Any) -> TrashRun:
    steps = _steps(run, note["names"])
    if any("/" in step.source or not step.is_within(run.relative) for step in steps):
        raise ValueError
    write_ids, txns = note.get("writeIds"), note.get("validTxns")
    _ = (write_ids and ValidWriteIds.parse(write_ids), txns and ValidTxns.parse(txns))
    return replace(
        run,
        state=RunState.WRITTEN,  # whatever else lies beside the note
        steps=steps,
        bytes=int(note["bytes"]),
        content=str(note.get("content") or ""),
        write_ids=write_ids,
        txns=txns,
        states={str(name): str(state) for name, state in (note.get("states") or {}).items()},
    )


def restore(fs: FileSystem, run: TrashRun) -> tuple[str, ...]:
    """Move a run's entries back, last removed first, drop the run, and return the names that came back.

    Raises:
        ConflictError: an entry of that name exists again, or the trash holds other files than were moved; nothing was
            moved back.
        NotFoundError: an entry is neither in the trash nor in the location; nothing was moved back.
    """
    if run.state is RunState.UNDONE:
        drop(fs, run)
        return ()
    if run.problem:
        raise unusable(fs, run)
    if not run.can_be_undone:
        why = "it was being purged" if run.state is RunState.FORGOTTEN else "it has no manifest: it was interrupted"
        raise NotFoundError(f"cannot restore {fs.display(run.path)}", why, "look into it, or purge it")
    in_trash = {entry.path for entry in fs.list_dir(run.path).entries}
    in_place = {entry.path for entry in fs.list_dir(run.location).entries}
    for name in run.names:
        if name in in_trash and name in in_place:
            raise ConflictError(
                f"cannot restore {fs.display(run.path)}",
                f"{fs.display(run.location)} holds {name} again",
                "move one of the two away by hand",
            )
        if name not in in_trash and name not in in_place:
            others = [other.id for other in trash_runs(fs, run.location) if other != run and name in other.names]
            hint = f"restore {max(others)} first: it took that away" if others else "list both, and try again"
            raise NotFoundError(
                f"cannot restore {fs.display(run.path)}", f"{name} is neither in the trash nor in place", hint
            )
    steps = [step for step in reversed(run.steps) if step.source in in_trash]
    names = tuple(step.source for step in steps)
    # Once some entries are back, the others follow whatever they hold: half a run is of no use.
    if len(names) == len(run.names) and run.content not in ("", _content(fs.list_tree(run.path).entries, names)):
        raise ConflictError(
            f"cannot restore {fs.display(run.path)}",
            "its entries hold other files than those that were moved to it",
            f"see what is in {fs.display(run.path)}, and move by hand what is wanted",
        )
    for step in steps:
        take_back(fs, run.location, step)
    mark(fs, run, RunState.UNDONE)
    drop(fs, run)
    return names


def changes_since(fs: FileSystem, run: TrashRun) -> tuple[str, ...] | None:
    """Compare the state of a location with the one before a run that was restored: others may have changed it.

    Returns:
        One sentence per difference; None if the run has not recorded the state.

    Raises:
        NotFoundError, AccessError, StorageError, BadDataError: the location cannot be listed.
    """
    if not run.states:
        return None
    write_ids = None if run.write_ids is None else ValidWriteIds.parse(run.write_ids)
    txns = None if run.txns is None else ValidTxns.parse(run.txns)
    now = _states(take_snapshot(fs, run.location, write_ids, txns))
    texts = []
    for name in sorted(run.states.keys() | now.keys()):
        old, new = run.states.get(name), now.get(name)
        if old is None:
            texts.append(f"{name} came")
        elif new is None:
            texts.append(f"{name} went")
        elif old != new:
            texts.append(f"{name} was {old} and is {new}")
    return tuple(texts)


def purge(fs: FileSystem, runs: Sequence[TrashRun], *, are_more: bool = False) -> None:
    """Delete runs from the trash, and the trash itself when it is empty; runs may have been purged meanwhile.

    Args:
        are_more: the caller purges more runs of this trash next.

    Raises:
        BadDataError: the note of a run is damaged, so its content is not known.
        RefusedError: a run is another user's.
    """
    for run in runs:
        if run.problem:
            raise unusable(fs, run)
        if run.can_be_undone:
            with suppress(NotFoundError):
                mark(fs, run, RunState.FORGOTTEN)
        drop(fs, run, are_more=are_more or run is not runs[-1])


def _states(snapshot: Snapshot) -> dict[str, str]:
    hidden = (Code.HIDDEN, Code.PARTITION)
    return {v.name: v.state.value for v in snapshot.state.verdicts if v.reason.code not in hidden}


def _content(entries: Iterable[Entry], names: Sequence[str]) -> str:
    """Digest the paths and sizes of all files in some children, wherever these lie."""
    wanted, digest = set(names), hashlib.sha256()
    for path, size in sorted((e.path, e.size) for e in entries if not e.is_dir):
        if path.partition("/")[0] in wanted:
            digest.update(f"{path}\0{size}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()
