"""Cleaning plans in files: the names to remove, and a digest of the location for which they were planned.

Files hold no credentials: storage options and passwords in URLs are left out.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from acidctl import __version__
from acidctl.acid.assumed_commits import Assumption
from acidctl.acid.listing import Listing, TableType
from acidctl.acid.names import is_hidden
from acidctl.acid.writeids import ValidTxns, ValidWriteIds
from acidctl.base.errors import AcidctlError, BadDataError, ConflictError, RefusedError
from acidctl.base.printable import printable
from acidctl.cleaning.leftovers import is_query_staging, query_staging
from acidctl.cleaning.plan import CleaningPlan, plan_cleaning
from acidctl.cleaning.retention import Policy
from acidctl.location.change.own_files import replace_file
from acidctl.location.evidence import not_known, refuse_part_of_others
from acidctl.location.find import at_path
from acidctl.location.other_formats import FormatDetector
from acidctl.location.snapshot import Snapshot, SnapshotSource, take_snapshot
from acidctl.location.snapshot_resolver import SnapshotResolver, SnapshotSpec
from acidctl.storage.os_errors import mapped
from acidctl.storage.port import FileSystem
from acidctl.storage.registry import open_location

KIND = "acidctl-cleaning-plan"
SCHEMA_VERSION = 1
_MOST_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class SavedPlan:
    """The plan of one location, as it was saved.

    Attributes:
        url: the location, without a password.
        write_ids, txns: the lists; None if none were given.
        digests: the digest of every visible or planned entry, by name.
        names: the names to remove, in the order of removal.
        assumption: the user's assumption on what is committed, in place of lists.
    """

    url: str
    write_ids: ValidWriteIds | None
    txns: ValidTxns | None
    policy: Policy
    digests: Mapping[str, str]
    names: tuple[str, ...]
    bytes: int
    assumption: Assumption | None = None

    @property
    def has_snapshot(self) -> bool:
        """Say if the plan itself contains what is committed."""
        return self.write_ids is not None or self.txns is not None or self.assumption is not None

    @classmethod
    def of(cls, plan: CleaningPlan) -> SavedPlan:
        """Return the saved form of a plan."""
        snapshot, assumed = plan.snapshot, plan.snapshot.assumed
        of_write_ids = assumed is not None and assumed.of_write_ids
        return cls(
            # without a password in a URL
            re.sub(r"^([A-Za-z][A-Za-z0-9+.-]*://[^/:@]*):[^/@]*@", r"\1@", snapshot.shown),
            None if snapshot.write_ids.is_everything or of_write_ids else snapshot.write_ids,
            None if assumed else snapshot.txns,
            plan.policy,
            entry_digests(snapshot.listing, plan.names, only=plan.is_query_staging),
            plan.names,
            plan.bytes,
            assumed.assumption if assumed else None,
        )

    @property
    def digest(self) -> str:
        """Return a digest of the whole location."""
        text = "".join(f"{name}\0{digest}\n" for name, digest in sorted(self.digests.items()))
        return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()

    def plan(
        self,
        storage: Mapping[str, str],
        resolver: SnapshotResolver | None = None,
        table_type: TableType | None = None,
        formats: FormatDetector | None = None,
    ) -> CleaningPlan:
        """Plan the location again, as it is now, for the same entries.

        Args:
            storage: options of the store, which are not saved.
            resolver: decides what is committed by now; default: the lists in the file.
            table_type: the type of the table according to the user.
            formats: other formats found above locations, for reuse.

        Raises:
            ConflictError: the location changed; the message names the entry.
            RefusedError: the location is not known to be of a transactional table.
            AcidctlError: the location cannot be listed or planned.
        """
        refuse_part_of_others(self.url, storage, formats or FormatDetector())
        fs, path = open_location(self.url, storage)
        alone = bool(self.names) and all(is_query_staging(name) for name in self.names)
        snapshot = query_staging(fs, path) if alone else self._snapshot(fs, path, resolver, table_type)
        now = entry_digests(snapshot.listing, self.names, only=alone)
        for name in sorted(now.keys() | self.digests.keys()):
            if now.get(name) != self.digests.get(name):
                what = "changed" if name in now and name in self.digests else "came" if name in now else "went"
                raise ConflictError(
                    f"{fs.display(path)} changed since it was planned",
                    f"{name} {what}",
                    "nothing was removed; plan again",
                )
        plan = plan_cleaning(snapshot, self.policy)
        by_name = {removal.name: removal for removal in plan.removals}
        if missing := [name for name in self.names if name not in by_name]:
            raise ConflictError(
                f"{fs.display(path)} is not what it was when it was planned",
                f"{missing[0]} may no longer be removed",
                "nothing was removed; plan again",
            )
        # The order is that of the new plan: the file's order may not be safe to interrupt.
        wanted = set(self.names)
        return replace(plan, removals=tuple(removal for removal in plan.removals if removal.name in wanted))

    def _snapshot(
        self, fs: FileSystem, path: str, resolver: SnapshotResolver | None, table_type: TableType | None
    ) -> Snapshot:
        found = replace(at_path(fs, path, resolver or SnapshotResolver()), given_type=table_type)
        evidence = found.evidence
        if not evidence.may_change:
            raise not_known(found.shown, evidence)
        if resolver and resolver.decides:
            return found.snapshot()
        if self.assumption is None:
            source = SnapshotSource("saved-plan")
            return take_snapshot(fs, path, self.write_ids, self.txns, look=found.look, source=source)
        spec = SnapshotSpec(of_any_table=self.write_ids, txns=self.txns, assumption=self.assumption)
        snapshot = replace(found, listed=found.look, resolver=SnapshotResolver(spec)).snapshot()
        return replace(snapshot, source=SnapshotSource("saved-plan"))


def entry_digests(listing: Listing, planned: Sequence[str], *, only: bool = False) -> dict[str, str]:
    """Digest the paths, sizes and times of everything in each entry.

    Hidden entries that are not planned are left out: other processes may stage their work meanwhile, and acidctl keeps
    its locks and trash in the location.

    Args:
        only: leave out all entries that are not planned.
    """
    wanted = set(planned)
    digests: dict[str, Any] = {}
    for entry in sorted(listing.entries, key=lambda entry: entry.path):
        name = entry.path.partition("/")[0]
        if (only or is_hidden(name)) and name not in wanted:
            continue
        digest = digests.setdefault(name, hashlib.sha256())
        text = f"{entry.path}\0{entry.size}\0{entry.modified}\0{entry.is_dir}\n"
        digest.update(text.encode("utf-8", "surrogateescape"))
    return {name: digest.hexdigest()[:32] for name, digest in digests.items()}


def write_plans(path: str, plans: Sequence[CleaningPlan]) -> None:
    """Write plans to a file in one step; an existing file is replaced.

    Raises:
        AccessError, NotFoundError, StorageError: the file cannot be written.
    """
    data = {
        "schema_version": SCHEMA_VERSION,
        "kind": KIND,
        "acidctl": __version__,
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "locations": [_record(SavedPlan.of(plan), plan) for plan in plans],
    }
    text = json.dumps(data, indent=1)  # ASCII: names that are not UTF-8 come back as they were
    with mapped("write", path):
        replace_file(Path(path), f"{text}\n".encode("ascii"), is_private=True)


def who_may_change(path: str) -> str:
    """Say who besides this user and root may have written a file of plans; empty for nobody.

    Raises:
        NotFoundError, AccessError: the file's status cannot be read.
    """
    with mapped("look at", path):
        info = Path(path).stat()
    if info.st_uid not in (0, os.geteuid()):
        return f"it belongs to the user {info.st_uid}"
    return "others may write to it" if stat.S_IMODE(info.st_mode) & 0o022 else ""


def _record(saved: SavedPlan, plan: CleaningPlan) -> dict[str, Any]:
    return {
        "location": saved.url,
        "writeIds": None if saved.write_ids is None else str(saved.write_ids),
        "validTxns": None if saved.txns is None else str(saved.txns),
        "assumeCommittedSeconds": None if saved.assumption is None else saved.assumption.age,
        "olderThanSeconds": saved.policy.older_than,
        "leftovers": saved.policy.leftovers,
        "digest": saved.digest,
        "entries": dict(saved.digests),
        "bytes": saved.bytes,
        "removals": [removal.record for removal in plan.removals],
    }


def read_plans(path: str) -> list[SavedPlan]:
    """Read the plans of a file.

    Raises:
        NotFoundError, AccessError: the file cannot be read.
        BadDataError: acidctl did not write the file, or it was changed.
        RefusedError: it is another user's pipe, which might block forever.
    """
    _refuse_foreign_pipe(path)
    with mapped("read", path), Path(path).open("rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise BadDataError(f"cannot use {path}", f"it is a bomb, or larger than the limit: {_MOST_BYTES:,} bytes")
    try:
        content = json.loads(data)
        if content["kind"] != KIND:
            raise _UnusableError("it is something else")
        if content["schema_version"] != SCHEMA_VERSION:
            raise _UnusableError(f"it is of version {content['schema_version']}, not {SCHEMA_VERSION}")
        saved = list(_saved(content["locations"]))
        if len({plan.url for plan in saved}) < len(saved):
            raise _UnusableError("it names a location twice: it was changed")
        return saved
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError, AcidctlError) as error:
        is_explained = isinstance(error, _UnusableError)
        why = str(error) if is_explained else "it is not a saved plan of a cleaning, or is damaged"
        raise BadDataError(f"cannot use {path}", why, "make a new one: `acidctl clean --plan FILE`") from None


def _refuse_foreign_pipe(path: str) -> None:
    with mapped("read", path):
        status = Path(path).stat()
    if stat.S_ISFIFO(status.st_mode) and status.st_uid not in (os.geteuid(), 0):
        why = "it is a pipe of another user, who may never write to it"
        raise RefusedError(f"will not read {printable(path)}", why, "copy what you want of it to a file of your own")


class _UnusableError(ValueError):
    """The plan cannot be applied; the message says why."""


def _saved(records: Sequence[Mapping[str, Any]]) -> Iterator[SavedPlan]:
    for record in records:
        names = tuple(removal["name"] for removal in record["removals"])
        if any(not isinstance(name, str) or "/" in name or name in ("", ".", "..") for name in names):
            raise TypeError
        if len(set(names)) < len(names):
            raise _UnusableError("it names an entry twice: it was changed")
        saved = SavedPlan(
            str(record["location"]),
            None if record["writeIds"] is None else ValidWriteIds.parse(record["writeIds"]),
            None if record["validTxns"] is None else ValidTxns.parse(record["validTxns"]),
            Policy(float(record["olderThanSeconds"]), bool(record["leftovers"])),
            {str(name): str(digest) for name, digest in record["entries"].items()},
            names,
            int(record["bytes"]),
            None if record["assumeCommittedSeconds"] is None else Assumption(float(record["assumeCommittedSeconds"])),
        )
        if saved.digest != record["digest"]:
            raise _UnusableError("its digest does not fit what it says: it was changed")
        yield saved
