"""The process that works on a location, recorded beside its work to detect later whether it has ended."""

from __future__ import annotations

import getpass
import json
import os
import socket
import time
from contextlib import suppress
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
        started: when the process began, in the kernel's ticks; 0 if not known. It tells reused process ids apart.
        since: when it began this work, seconds since the epoch.
        where: the machine, its boot, and the namespace of process ids, since containers have their own, often under the
            name of their host; empty if not known.
    """

    host: str
    pid: int
    started: int
    user: str
    since: float
    where: str = ""

    @classmethod
    def this(cls) -> Owner:
        """Return the running process."""
        try:
            user = getpass.getuser()
        except (KeyError, OSError):  # the user id has no name, as in a container
            user = str(os.getuid())
        return cls(socket.gethostname(), os.getpid(), _started(os.getpid()), user, time.time(), _here())

    def to_bytes(self) -> bytes:
        """Return its JSON."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Owner | None:
        """Parse a file; return None if it is torn, or not acidctl's."""
        try:
            record = json.loads(data)
            names = str(record["host"]), int(record["pid"]), int(record["started"]), str(record["user"])
            owner = cls(*names, float(record["since"]), str(record.get("where", "")))
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            return None
        return owner if 0 < owner.pid < _NO_PID else None  # os.kill would address a group

    def is_dead(self) -> bool:
        """Return whether the process certainly ended, which shows only on its own machine and in its container."""
        if not self.is_here():  # unless the machine was restarted, which ended all its processes
            old, new = self.where.split("/"), _here().split("/")
            is_known = self.host == socket.gethostname() and len(old) == len(new) == 3 and bool(old[0])
            return is_known and old[0] == new[0] and old[1] != new[1]
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:
            return False
        return self.started != 0 and _started(self.pid) not in (0, self.started)

    def is_alive(self) -> bool:
        """Return whether the process certainly still runs on this machine, and not another one with the same id."""
        return self.is_here() and not self.is_dead()

    def is_here(self) -> bool:
        """Return whether its process id means the same here."""
        return self.host == socket.gethostname() and (not self.where or self.where == _here())

    def __str__(self) -> str:
        return f"process {self.pid} of {self.user} on {self.host}"


def owner_at(fs: FileSystem, path: str) -> Owner | None:
    """Return the process that a file names: a lock, a claim on one, or the file in a staging directory.

    Returns:
        None if it is torn, or not acidctl's file.

    Raises:
        BadDataError: it is longer than any of acidctl's, or not a file.
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
    """Return ``<machine>/<boot>/<namespace of process ids>``; empty if the kernel does not show it."""
    machine = ""  # as in many containers
    with suppress(OSError):
        machine = Path("/etc/machine-id").read_text().strip().replace("/", "")
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{machine}/{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _started(pid: int) -> int:
    """Return the kernel's start time of a process; 0 without /proc."""
    try:
        # The name, in parentheses, may hold spaces.
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0
