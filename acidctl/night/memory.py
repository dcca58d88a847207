"""What one night leaves to the next: a folder that one night at a time holds, and what was left for later in it."""

from __future__ import annotations

import fcntl
import json
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from acidctl.errors import ConflictError, StorageError
from acidctl.location.change.own_files import open_folder, replace_file
from acidctl.location.change.owner import Owner
from acidctl.location.coverage import Looked
from acidctl.storage.local.openat2 import held
from acidctl.storage.os_errors import mapped
from acidctl.wording import iso_time

NAME = "nightly.json"
_MOST_BYTES = 64 << 20
_KEPT_SECONDS = 30 * 86400.0
"""What no night has met for so long is forgotten."""

_POLL_SECONDS = 1.0


@dataclass(slots=True)
class Memory:
    """A folder of the local disk, with one small file.

    Attributes:
        folder: made where it is not there.
        tell: called with a sentence on what cannot be used.
    """

    folder: Path
    tell: Callable[[str], None] = lambda _: None
    _waiting: dict[str, tuple[float, float]] = field(default_factory=dict)
    _looked: dict[str, int] = field(default_factory=dict)

    @contextmanager
    def alone(self, wait: float = 0.0) -> Iterator[None]:
        """Hold the folder, so that two nights never meet.

        Args:
            wait: seconds that another one is waited for.

        Raises:
            ConflictError: another night holds it.
            RefusedError: a link of another user on the way to it.
            AccessError, StorageError: it cannot be made, written or locked.
        """
        with mapped("write", str(self.folder)):
            self.folder.mkdir(0o700, parents=True, exist_ok=True)
            descriptor = open_folder(self.folder)
        with held(descriptor):
            self._lock(descriptor, wait)
            self._waiting, self._looked = self._read(), self._read_looked()
            self.keep({})  # whoever comes now is told who is at work
            yield

    @property
    def written(self) -> float | None:
        """When it was written last, seconds since the epoch; None where no night was here, or may be looked at."""
        try:
            return (self.folder / NAME).stat().st_mtime
        except OSError:
            return None

    def recalled(self) -> Mapping[str, float]:
        """The gains of what was left for later before, by location; nothing is locked."""
        self._waiting = self._waiting or self._read()
        return {location: gain for location, (gain, _) in self._waiting.items()}

    def looked(self, where: str) -> int | None:
        """How many locations the last run on record found at these places; None without one. It takes no lock."""
        self._looked = self._looked or self._read_looked()
        return self._looked.get(where)

    def keep_looked(self, looked: Looked) -> None:
        """Record what later runs should find at the same places."""
        self._looked[looked.where] = looked.locations
        self.keep({})

    def keep(self, waiting: Mapping[str, float], settled: Iterable[str] = ()) -> None:
        """Write down what is left for the next night; what no night has met lately is forgotten.

        Args:
            waiting: gains by location.
            settled: what is not left any more.
        """
        now = time.time()
        self._waiting = {one: kept for one, kept in self._waiting.items() if abs(now - kept[1]) < _KEPT_SECONDS}
        for location in settled:
            self._waiting.pop(location, None)
        self._waiting |= {location: (gain, now) for location, gain in waiting.items()}
        record = {
            "schema_version": 1,
            "owner": asdict(Owner.this()),
            "postponed": [
                {"location": location, "gain": gain, "since": when} for location, (gain, when) in self._waiting.items()
            ],
            "looked": self._looked,
        }
        try:
            replace_file(self.folder / NAME, json.dumps(record, indent=1).encode("ascii") + b"\n", is_private=True)
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            self.tell(f"{self.folder / NAME} cannot be written: {why}; the next night does not know what was left")

    def _lock(self, descriptor: int, wait: float) -> None:
        until = time.monotonic() + wait
        while True:
            try:
                return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= until:
                    raise ConflictError(
                        "another night is at work",
                        f"{self._who()} holds {self.folder}",
                        "try again when it has ended, or give a night of other tables a `state` of its own",
                    ) from None
                time.sleep(min(_POLL_SECONDS, max(0.0, until - time.monotonic())))
            except OSError as error:
                raise StorageError(
                    f"cannot lock {self.folder}", (error.strerror or str(error)).lower(), "give another `state`"
                ) from error

    def _who(self) -> str:
        owner = None
        with suppress(OSError, ValueError, KeyError, TypeError):  # it has written nothing yet
            owner = Owner.from_bytes(json.dumps(json.loads(self._bytes())["owner"]).encode())
        return f"{owner}, since {iso_time(owner.since)}," if owner else "its process"

    def _bytes(self) -> bytes:
        with (self.folder / NAME).open("rb") as file:
            return file.read(_MOST_BYTES)

    def _read_looked(self) -> dict[str, int]:
        with suppress(OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return {str(where): int(count) for where, count in json.loads(self._bytes())["looked"].items()}
        return {}

    def _read(self) -> dict[str, tuple[float, float]]:
        try:
            said = json.loads(self._bytes())["postponed"]
            found = {str(one["location"]): (float(one["gain"]), float(one["since"])) for one in said}
            return {name: kept for name, kept in found.items() if all(map(math.isfinite, kept))}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            self.tell(
                f"{self.folder / NAME} cannot be used ({type(error).__name__}): nothing comes first for having waited"
            )
            return {}


def usual_folder() -> Path:
    """What systemd gives to a service, else ``~/.local/state/acidctl``, or where the platform keeps such things."""
    from platformdirs import user_state_dir  # noqa: PLC0415 - only where no folder is given

    given = os.environ.get("STATE_DIRECTORY", "").partition(":")[0]
    return Path(given or user_state_dir("acidctl"))
