"""Removal that can be undone: planned entries move into a hidden directory of the location, with a manifest.

``<location>/.acidctl-trash/<time>-<id>/manifest.json`` is written before the first entry moves, so that an
interrupted run can always be undone or repeated. When a run was restored, or is to be deleted, its manifest gets
another name first: half of a run never looks like all of it. A cleaning of many locations has one id in all of them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from acidctl.acid.listing import Entry
from acidctl.acid.reasons import Code
from acidctl.acid.writeids import ValidTxns, ValidWriteIds
from acidctl.errors import BadDataError, ConflictError, NotFoundError, UsageProblem
from acidctl.location.own_files import TORN, foreign, new_run_id, not_ours, read_note, require_ours, write_whole
from acidctl.location.snapshot import Snapshot, take_snapshot
from acidctl.storage.access import Access
from acidctl.storage.port import FileSystem

TRASH = ".acidctl-trash"
MANIFEST = "manifest.json"
_VERSION = 1


class Phase(StrEnum):
    """How far a run is."""

    IN_TRASH = "in-trash"
    UNFINISHED = "unfinished"
    RESTORED = "restored"
    PURGED = "purged"
    DAMAGED = "damaged"


_MARKS = {Phase.IN_TRASH: MANIFEST, Phase.RESTORED: "restored.json", Phase.PURGED: "purged.json"}


@dataclass(frozen=True, slots=True)
class TrashRun:
    """One cleaning run in the trash of a location.

    Attributes:
        id: the name of its directory, ``<UTC time>-<id>``.
        names: the entries it took, in the order of removal.
        bytes: as planned.
        phase: unfinished when it was interrupted before its manifest was written; restored, purged: its directory is
            only waiting to be removed.
        content: a digest of what lies in the entries; empty where it is not known.
        write_ids, txns: the lists of the plan, as Hive's strings; None where none was given.
        states: what every visible entry was, by its name, before the run; empty where it is not known.
        problem: of a damaged one: why it cannot be used.
    """

    location: str
    id: str
    names: tuple[str, ...]
    bytes: int
    phase: Phase = Phase.IN_TRASH
    content: str = ""
    write_ids: str | None = None
    txns: str | None = None
    states: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""

    @classmethod
    def of(cls, snapshot: Snapshot, names: tuple[str, ...], size: int, run_id: str = "") -> TrashRun:
        """A new one, that takes these names from a location."""
        return cls(
            snapshot.path,
            run_id or new_run_id(),
            names,
            size,
            content=_content(snapshot.listing.entries, names),
            write_ids=None if snapshot.write_ids.is_everything else str(snapshot.write_ids),
            txns=None if snapshot.txns is None else str(snapshot.txns),
            states=_states(snapshot),
        )

    @property
    def is_complete(self) -> bool:
        """Whether it can be restored."""
        return self.phase is Phase.IN_TRASH

    @property
    def path(self) -> str:
        return f"{self.location}/{TRASH}/{self.id}"

    @property
    def began(self) -> float | None:
        """When it began, in seconds since the epoch; None when its name does not tell."""
        try:
            return datetime.strptime(self.id.partition("-")[0] + "+0000", "%Y%m%dT%H%M%S.%fZ%z").timestamp()
        except ValueError:
            return None

    def write_manifest(self, fs: FileSystem) -> None:
        """Make the run's directory."""
        manifest = {
            "version": _VERSION,
            "names": self.names,
            "bytes": self.bytes,
            "content": self.content,
            "writeIds": self.write_ids,
            "validTxns": self.txns,
            "states": self.states,
        }
        fs.make_dirs(f"{self.location}/{TRASH}", below=self.location)
        require_ours(fs, self.location, TRASH)
        fs.make_dirs(self.path, below=self.location)
        write_whole(fs, f"{self.path}/{MANIFEST}", json.dumps(manifest, indent=1).encode())

    def drop_unused(self, fs: FileSystem) -> None:
        """Take the run's directory away again when nothing moved into it; it stays when something did after all."""
        if {entry.path for entry in fs.list_dir(self.path).entries} - {MANIFEST, TORN}:
            return
        for name in (TORN, MANIFEST):
            with suppress(NotFoundError):
                fs.remove_tree(f"{self.path}/{name}")
        fs.remove_empty(self.path)
        if fs.exists(self.path):  # a move whose answer was lost came late
            self.write_manifest(fs)
        else:
            fs.remove_empty(f"{self.location}/{TRASH}")


def list_runs(fs: FileSystem, location: str) -> list[TrashRun]:
    """The runs in a location's trash, oldest first; of one whose manifest acidctl did not write its phase says so."""
    try:
        entries = fs.list_dir(location).entries
        if all(entry.path != TRASH for entry in entries):
            return []
        if why := not_ours(fs, location, TRASH):
            return [TrashRun(location, "", (), 0, Phase.DAMAGED, problem=why)]
        access = fs.access_below(f"{location}/{TRASH}")
        entries = fs.list_dir(f"{location}/{TRASH}").entries
    except NotFoundError:
        return []
    return [_read_run(fs, location, entry.path, access.get(entry.path)) for entry in entries if entry.is_dir]


def _read_run(fs: FileSystem, location: str, run_id: str, access: Access | None) -> TrashRun:
    here = f"{location}/{TRASH}/{run_id}"
    if why := foreign(access):
        return TrashRun(location, run_id, (), 0, Phase.DAMAGED, problem=why)
    present = {entry.path for entry in fs.list_dir(here).entries}
    phase = next((phase for phase, mark in _MARKS.items() if mark in present), Phase.UNFINISHED)
    if phase is not Phase.IN_TRASH:
        return TrashRun(location, run_id, (), 0, phase)
    if why := not_ours(fs, here, MANIFEST):
        return TrashRun(location, run_id, (), 0, Phase.DAMAGED, problem=f"its {MANIFEST}: {why}")
    path = f"{here}/{MANIFEST}"
    try:
        manifest = json.loads(read_note(fs, path))
        if manifest["version"] != _VERSION or not all(isinstance(name, str) for name in manifest["names"]):
            raise ValueError
        names = tuple(manifest["names"])
        if any("/" in name or name in ("", ".", "..") for name in names):
            raise ValueError
        write_ids, txns = manifest.get("writeIds"), manifest.get("validTxns")
        _ = (write_ids and ValidWriteIds.parse(write_ids), txns and ValidTxns.parse(txns))
        return TrashRun(
            location,
            run_id,
            names,
            int(manifest["bytes"]),
            content=str(manifest.get("content") or ""),
            write_ids=write_ids,
            txns=txns,
            states={str(name): str(state) for name, state in (manifest.get("states") or {}).items()},
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError, UsageProblem):
        return TrashRun(location, run_id, (), 0, Phase.DAMAGED, problem=f"its {MANIFEST} is no manifest of acidctl")


def damaged(fs: FileSystem, run: TrashRun) -> BadDataError:
    """What there is to say of a run whose manifest cannot be used."""
    hint = "move its entries back by hand, or delete them; the other runs can be used"
    return BadDataError(f"cannot use {fs.display(run.path.rstrip('/'))}", run.problem, hint)


def restore(fs: FileSystem, run: TrashRun) -> tuple[str, ...]:
    """Move a run's entries back, last removed first, and drop the run.

    Returns:
        The names that came back.

    Raises:
        ConflictError: an entry of that name exists again, or the trash holds something else than what was moved;
            nothing was moved.
        NotFoundError: an entry is neither in the trash nor in place; nothing was moved.
    """
    if run.phase is Phase.RESTORED:
        _drop(fs, run)
        return ()
    if run.phase is Phase.DAMAGED:
        raise damaged(fs, run)
    if not run.is_complete:
        why = "it was being purged" if run.phase is Phase.PURGED else "it has no manifest: it was interrupted"
        raise NotFoundError(f"cannot restore {fs.display(run.path)}", why, "look into it, or purge it")
    there = {entry.path for entry in fs.list_dir(run.path).entries}
    in_place = {entry.path for entry in fs.list_dir(run.location).entries}
    for name in run.names:
        if name in there and name in in_place:
            raise ConflictError(
                f"cannot restore {fs.display(run.path)}",
                f"{fs.display(run.location)} holds {name} again",
                "move one of the two away by hand",
            )
        if name not in there and name not in in_place:
            others = [other.id for other in list_runs(fs, run.location) if other != run and name in other.names]
            hint = f"restore {max(others)} first: it took that away" if others else "list both, and try again"
            raise NotFoundError(
                f"cannot restore {fs.display(run.path)}", f"{name} is neither in the trash nor in place", hint
            )
    names = [name for name in reversed(run.names) if name in there]
    # Once some are back, the rest follows whatever it holds: half a run helps nobody.
    if len(names) == len(run.names) and run.content not in ("", _content(fs.list_tree(run.path).entries, names)):
        raise ConflictError(
            f"cannot restore {fs.display(run.path)}",
            "its entries hold other files than those that were moved to it",
            f"see what is in {fs.display(run.path)}, and move by hand what is wanted",
        )
    for name in names:
        fs.rename(f"{run.path}/{name}", f"{run.location}/{name}")
    _mark(fs, run, Phase.RESTORED)
    _drop(fs, run)
    return tuple(names)


def changes_since(fs: FileSystem, run: TrashRun) -> tuple[str, ...] | None:
    """How the state of a location differs from the one before a run that was restored.

    Returns:
        A sentence a difference, none when the state is the same: what others did meanwhile. None when the run does
        not say what the state was.

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


def purge(fs: FileSystem, runs: Sequence[TrashRun]) -> None:
    """Remove runs from the trash for good, and the trash itself when it is empty; what others purged is fine.

    Raises:
        BadDataError: nobody can say what a run holds.
    """
    for run in runs:
        if run.phase is Phase.DAMAGED:
            raise damaged(fs, run)
        if run.is_complete:
            with suppress(NotFoundError):
                _mark(fs, run, Phase.PURGED)
        _drop(fs, run)


def _mark(fs: FileSystem, run: TrashRun, phase: Phase) -> None:
    fs.rename(f"{run.path}/{MANIFEST}", f"{run.path}/{_MARKS[phase]}")


def _drop(fs: FileSystem, run: TrashRun) -> None:
    """The mark goes last: what is left of an interrupted removal says what it is."""
    marks = set(_MARKS.values())
    trash = f"{run.location}/{TRASH}"
    with suppress(NotFoundError):  # somebody else was faster
        for entry in fs.list_dir(run.path).entries:
            if entry.path not in marks:
                with suppress(NotFoundError):
                    fs.remove_tree(f"{run.path}/{entry.path}")
        fs.remove_tree(run.path)
    fs.remove_empty(trash)  # a cleaning may just have begun another run there


def _states(snapshot: Snapshot) -> dict[str, str]:
    hidden = (Code.HIDDEN, Code.PARTITION)
    return {v.name: v.state.value for v in snapshot.state.verdicts if v.reason.code not in hidden}


def _content(entries: Iterable[Entry], names: Sequence[str]) -> str:
    """A digest of the paths and sizes of all files in some children, wherever those lie."""
    wanted, digest = set(names), hashlib.sha256()
    for path, size in sorted((e.path, e.size) for e in entries if not e.is_dir):
        if path.partition("/")[0] in wanted:
            digest.update(f"{path}\0{size}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()
