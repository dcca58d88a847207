"""Removal that can be undone: planned entries move into a hidden directory of the location, with a manifest.

``<location>/.acidctl-trash/<time>-<id>/manifest.json`` is written before the first entry moves, so that an
interrupted run can always be undone or repeated.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from acidctl.cleaning.plan import CleaningPlan, plan_cleaning
from acidctl.errors import BadDataError, ConflictError, NotFoundError
from acidctl.storage.port import FileSystem
from acidctl.storage.snapshot import take_snapshot

TRASH = ".acidctl-trash"
MANIFEST = "manifest.json"
_TORN = "_manifest.json"
_VERSION = 1


@dataclass(frozen=True, slots=True)
class TrashRun:
    """One cleaning run in the trash of a location.

    Attributes:
        id: the name of its directory, ``<UTC time>-<id>``.
        names: the entries it took, in the order of removal.
        bytes: as planned.
        is_complete: False for what was interrupted before its manifest was written, or while it was purged: nothing
            can be restored from it.
    """

    location: str
    id: str
    names: tuple[str, ...]
    bytes: int
    is_complete: bool = True

    @property
    def path(self) -> str:
        return f"{self.location}/{TRASH}/{self.id}"


def apply_plan(plan: CleaningPlan, *, trash: bool = True) -> TrashRun | None:
    """Carry a plan out, after listing the location again.

    Args:
        trash: move to the trash; False removes for good.

    Returns:
        The run in the trash; None when it was removed for good or there was nothing to do.

    Raises:
        ConflictError: the location changed since it was planned, so that the plan is another one now.
    """
    if not plan.removals:
        return None
    before = plan.snapshot
    fs = before.fs
    now = plan_cleaning(take_snapshot(fs, before.path, before.write_ids, before.txns))
    names = [removal.name for removal in plan.removals]
    if not set(names) <= {removal.name for removal in now.removals}:
        raise ConflictError(
            f"{fs.display(before.path)} changed since it was planned",
            f"{min(set(names) - {removal.name for removal in now.removals})} may no longer be removed",
            "nothing was removed; plan again",
        )
    if not trash:
        for name in names:
            fs.remove_tree(before.absolute(name))
        return None
    # Milliseconds, so that the runs of a moment keep their order: they must be undone backwards.
    stamp = f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}"[:-3] + "Z"
    run = TrashRun(before.path, f"{stamp}-{uuid.uuid4().hex[:8]}", tuple(names), plan.bytes)
    fs.make_dirs(run.path)
    manifest = {"version": _VERSION, "names": names, "bytes": plan.bytes}
    # Whole or not at all: a torn manifest would look like damage.
    fs.write_bytes(f"{run.path}/{_TORN}", json.dumps(manifest, indent=1).encode())
    fs.rename(f"{run.path}/{_TORN}", f"{run.path}/{MANIFEST}")
    for name in names:
        fs.rename(before.absolute(name), f"{run.path}/{name}")
    return run


def list_runs(fs: FileSystem, location: str) -> list[TrashRun]:
    """The runs in a location's trash, oldest first.

    Raises:
        BadDataError: a manifest that acidctl did not write.
    """
    try:
        entries = fs.list_dir(f"{location}/{TRASH}").entries
    except NotFoundError:
        return []
    return [_read_run(fs, location, entry.path) for entry in entries if entry.is_dir]


def _read_run(fs: FileSystem, location: str, run_id: str) -> TrashRun:
    path = f"{location}/{TRASH}/{run_id}/{MANIFEST}"
    if not fs.exists(path):
        return TrashRun(location, run_id, (), 0, is_complete=False)
    try:
        manifest = json.loads(fs.read_bytes(path))
        if manifest["version"] != _VERSION or not all(isinstance(name, str) for name in manifest["names"]):
            raise ValueError
        names = tuple(manifest["names"])
        if any("/" in name or name in ("", ".", "..") for name in names):
            raise ValueError
        return TrashRun(location, run_id, names, int(manifest["bytes"]))
    except (ValueError, KeyError, TypeError):
        raise BadDataError(
            f"cannot use {fs.display(path)}", "it is no manifest of acidctl", "move its entries back by hand"
        ) from None


def restore(fs: FileSystem, run: TrashRun) -> tuple[str, ...]:
    """Move a run's entries back, last removed first, and drop the run.

    Returns:
        The names that came back.

    Raises:
        ConflictError: an entry of that name exists again; nothing was moved.
        NotFoundError: an entry is neither in the trash nor in place; nothing was moved.
    """
    if not run.is_complete:
        raise NotFoundError(
            f"cannot restore {run.id}", "it has no manifest: it was interrupted", "look into it, or purge it"
        )
    there = {entry.path for entry in fs.list_dir(run.path).entries}
    in_place = {entry.path for entry in fs.list_dir(run.location).entries}
    names = [name for name in reversed(run.names) if name in there]
    for name in run.names:
        if name in there and name in in_place:
            raise ConflictError(
                f"cannot restore {run.id}",
                f"{fs.display(run.location)} holds {name} again",
                "move one of the two away by hand",
            )
        if name not in there and name not in in_place:
            raise NotFoundError(f"cannot restore {run.id}", f"{name} is neither in the trash nor in place")
    for name in names:
        fs.rename(f"{run.path}/{name}", f"{run.location}/{name}")
    purge(fs, [run])
    return tuple(names)


def purge(fs: FileSystem, runs: Sequence[TrashRun]) -> None:
    """Remove runs from the trash for good, and the trash itself when it is empty."""
    for run in runs:
        # The manifest goes last: what is left of an interrupted purge is still a run that can be purged.
        for entry in fs.list_dir(run.path).entries:
            if entry.path != MANIFEST:
                fs.remove_tree(f"{run.path}/{entry.path}")
        fs.remove_tree(run.path)
    for location in {run.location for run in runs}:
        if not fs.list_dir(f"{location}/{TRASH}").entries:
            fs.remove_tree(f"{location}/{TRASH}")
