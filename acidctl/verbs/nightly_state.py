"""Keep the state of a nightly run for the next: a folder that one run at a time holds, and its number of locations.

Apart from the run itself, since `acidctl status` reads it without what compactions need.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from acidctl.base.errors import ConflictError, StorageError
from acidctl.base.user_folders import user_folder
from acidctl.location.change.own_files import Owner, open_folder, replace_file
from acidctl.location.coverage import Looked
from acidctl.storage.local.rooted_directory import held
from acidctl.storage.os_errors import mapped
from acidctl.wording import iso_time

NAME = "nightly.json"
_MOST_BYTES = 64 << 20
_POLL_SECONDS = 1.0
_UNUSABLE = (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError)


@dataclass(slots=True)
class NightlyState:
    """The state that a run keeps for the next one, in a local folder that one run at a time holds.

    Attributes:
        folder: made if it is missing.
        tell: called with a sentence if the file cannot be written.
    """

    folder: Path
    tell: Callable[[str], None] = lambda _: None

    @contextmanager
    def alone(self, wait: float = 0.0) -> Iterator[None]:
        """Hold the folder, so that no two runs use it at once.

        Args:
            wait: seconds to wait for another run.

        Raises:
            ConflictError: another run holds it.
            RefusedError: a link of another user leads to it.
            AccessError, StorageError: it cannot be made, written or locked.
        """
        with mapped("write", str(self.folder)):
            self.folder.mkdir(0o700, parents=True, exist_ok=True)
            descriptor = open_folder(self.folder)
        with held(descriptor):
            self._lock(descriptor, wait)
            self._write(self._record().get("looked"))  # a run that comes now names the one at work
            yield

    @property
    def written(self) -> float | None:
        """Return the time of the last write, in seconds since the epoch; None if there is no readable file."""
        try:
            return (self.folder / NAME).stat().st_mtime
        except OSError:
            return None

    def looked(self, where: str) -> int | None:
        """Return the number of locations that the last run found at these places; None if none is on record."""
        looked = self._record().get("looked")
        count = looked.get(where) if isinstance(looked, dict) else None
        return count if isinstance(count, int) else None

    def keep(self, looked: Looked) -> None:
        """Record the number of locations that later runs should find at the same places."""
        before = self._record().get("looked")
        self._write({**(before if isinstance(before, dict) else {}), looked.where: looked.locations})

    def _write(self, looked: object) -> None:
        record = {"schema_version": 1, "owner": asdict(Owner.this()), "looked": looked or {}}
        try:
            replace_file(self.folder / NAME, json.dumps(record, indent=1).encode("ascii") + b"\n", is_private=True)
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            self.tell(f"{self.folder / NAME} cannot be written: {why}; the next run does not notice missing locations")

    def _lock(self, descriptor: int, wait: float) -> None:
        until = time.monotonic() + wait
        while True:
            try:
                return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= until:
                    raise ConflictError(
                        "another nightly run is at work",
                        f"{self._who()} holds {self.folder}",
                        "try again when it has ended, or give a run of other tables a --state of its own",
                    ) from None
                time.sleep(min(_POLL_SECONDS, max(0.0, until - time.monotonic())))
            except OSError as error:
                raise StorageError(
                    f"cannot lock {self.folder}", (error.strerror or str(error)).lower(), "give another --state"
                ) from error

    def _who(self) -> str:
        with suppress(*_UNUSABLE):  # it has written nothing yet
            if owner := Owner.from_bytes(json.dumps(self._record()["owner"]).encode()):
                return f"{owner}, since {iso_time(owner.since)},"
        return "its process"

    def _record(self) -> dict[str, object]:
        with suppress(*_UNUSABLE), (self.folder / NAME).open("rb") as file:
            record = json.loads(file.read(_MOST_BYTES))
            return record if isinstance(record, dict) else {}
        return {}


def usual_folder() -> Path:
    """Return the folder that systemd gives to a service, else ``~/.local/state/acidctl`` or its like."""
    given = os.environ.get("STATE_DIRECTORY", "").partition(":")[0]
    return Path(given or user_folder("XDG_STATE_HOME", "~/.local/state"))
