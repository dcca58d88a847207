"""Who works on a location: written beside the work, so that whoever finds it later knows whether it is dead."""

from __future__ import annotations

import getpass
import json
import os
import socket
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from acidctl.storage.port import FileSystem
from acidctl.storage.ranged import MOST_METADATA, read_small

OWNER = "_owner.json"
"""In a staging directory: the process that works there."""

_NO_PID = 1 << 31
"""Process ids are below this."""


@dataclass(frozen=True, slots=True)
class Owner:
    """A process.

    Attributes:
        started: when the process began, in the kernel's ticks; 0 where that is not known. Process ids are used again.
        since: when it began this work, seconds since the epoch.
        where: the machine, its start, and the space of process ids that `pid` is one of, as containers have their own,
            often under the name of their host; empty where that is not known.
    """

    host: str
    pid: int
    started: int
    user: str
    since: float
    where: str = ""

    @classmethod
    def this(cls) -> Owner:
        """The running process."""
        try:
            user = getpass.getuser()
        except (KeyError, OSError):  # no name for the user id, as in a container
            user = str(os.getuid())
        return cls(socket.gethostname(), os.getpid(), _started(os.getpid()), user, time.time(), _here())

    def to_bytes(self) -> bytes:
        """JSON."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Owner | None:
        """None when it is torn, or somebody else's."""
        try:
            found = json.loads(data)
            names = str(found["host"]), int(found["pid"]), int(found["started"]), str(found["user"])
            owner = cls(*names, float(found["since"]), str(found.get("where", "")))
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            return None
        return owner if 0 < owner.pid < _NO_PID else None  # nobody else's can be asked for

    def is_dead(self) -> bool:
        """Whether the process certainly ended: only the machine, and the container, it ran in can tell."""
        if not self.is_here():
            return self.host == socket.gethostname() and _has_restarted(self.where, _here())
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:
            return False
        return self.started != 0 and _started(self.pid) not in (0, self.started)

    def is_alive(self) -> bool:
        """Whether the process certainly still runs: on this machine, and not only another one of the same id."""
        return self.is_here() and not self.is_dead()

    def is_here(self) -> bool:
        """Whether its process id means the same here."""
        return self.host == socket.gethostname() and (not self.where or self.where == _here())

    def __str__(self) -> str:
        return f"process {self.pid} of {self.user} on {self.host}"


def owner_at(fs: FileSystem, path: str) -> Owner | None:
    """Whom a file names: a lock, a claim on one, or the note in a staging directory.

    Returns:
        None where it is torn, or somebody else's file.

    Raises:
        BadDataError: it is larger than any of ours, or not a file.
        NotFoundError, AccessError, RefusedError, StorageError: it cannot be read.
    """
    return Owner.from_bytes(read_small(fs, path, MOST_METADATA))


def started_at() -> float:
    """Return when this machine was started, in seconds since the epoch; 0 if the kernel does not show it."""
    try:
        return time.time() - float(Path("/proc/uptime").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return 0.0


def _here() -> str:
    """``<machine>/<start of the kernel>/<space of process ids>``; empty where the kernel does not tell."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{_machine()}/{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _machine() -> str:
    """What stays when it is started again; empty in many containers."""
    try:
        return Path("/etc/machine-id").read_text().strip().replace("/", "")
    except OSError:
        return ""


def _has_restarted(before: str, now: str) -> bool:
    """Whether a machine was started since, so that nothing runs any more that ran then."""
    old, new = before.split("/"), now.split("/")
    return len(old) == len(new) == 3 and bool(old[0]) and old[0] == new[0] and old[1] != new[1]


def _started(pid: int) -> int:
    """The kernel's start time of a process; 0 where there is no /proc."""
    try:
        # The name, in parentheses, may hold spaces.
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0
