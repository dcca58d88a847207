"""Options of verbs, declared once: the command line, Python and the configuration take them from the same dataclass."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from acidctl.base.arguments import (
    as_columns,
    as_count,
    as_flag,
    as_pairs,
    as_size,
    as_text,
    as_texts,
    as_write_id_or_time,
    unusable,
)
from acidctl.base.deadline import as_seconds
from acidctl.base.errors import UsageProblem
from acidctl.base.nearest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable

    from acidctl.location.change.lock import Locking

_OPTION = "acidctl.option"
REQUIRED: Any = MISSING
"""As the default of an option: it must be given."""


class Kind(StrEnum):
    """The form of a value on the command line."""

    FLAG = "flag"
    TEXT = "text"
    DURATION = "duration"
    SECONDS = "seconds"
    """A duration; a number without a unit means seconds."""
    SIZE = "size"
    COUNT = "count"
    NUMBER = "number"
    MOMENT = "moment"
    """A write id, or a time."""
    PAIRS = "pairs"
    """Several settings with their values: the option is repeated."""
    COLUMNS = "columns"
    """Columns, each with a value that is shown even if its column is called "password"; the option is repeated."""
    LIST = "list"
    """Several texts: the option is repeated."""
    NAMES = "names"
    """Several names, separated by commas."""
    ARGUMENT = "argument"
    """A text without a flag before it."""
    FILE = "file"
    NEW_FILE = "new-file"
    DIRECTORY = "directory"


@dataclass(frozen=True, slots=True)
class Option:
    """The option of the command line that a field of a dataclass becomes.

    Attributes:
        flags: ``("-n", "--dry-run")``; with a slash in one of them, ``--lock/--no-lock``, it can be turned off.
        typed: it must be typed: no file and no environment variable sets it.
        choices: the values that it takes; empty for any.
        least, most: bounds of a number.
    """

    flags: tuple[str, ...]
    help: str
    kind: Kind
    metavar: str | None = None
    typed: bool = False
    choices: tuple[str, ...] = ()
    least: int = 0
    most: int | None = None


def option(
    default: Any,
    *flags: str,
    help: str,  # noqa: A002 - the word that click and argparse use
    kind: Kind | None = None,
    **more: Any,
) -> Any:
    """Return a field of an options dataclass that is an option of the command line.

    Args:
        kind: by default a flag for a bool, a duration for a float, else a text.
        more: further attributes of :class:`Option`.
    """
    guessed = {bool: Kind.FLAG, float: Kind.DURATION}.get(type(default), Kind.TEXT)
    return field(default=default, metadata={_OPTION: Option(flags, help, kind or guessed, **more)})


def group(kind: type[Any]) -> Any:
    """Return a field that holds further options, which stand beside the others on the command line."""
    return field(default_factory=kind)


def declared(kind: type[Any]) -> Iterator[tuple[tuple[str, ...], Field[Any], Option]]:
    """Yield the path, the field and the option of every field of a dataclass and of its groups."""
    for item in fields(kind):
        if face := item.metadata.get(_OPTION):
            yield (item.name,), item, face
        elif item.default_factory is not MISSING and is_dataclass(item.default_factory):
            inner: Any = item.default_factory
            yield from (((item.name, *path), below, face) for path, below, face in declared(inner))


def made(kind: type[Any], values: dict[str, Any]) -> Any:
    """Return an instance of a dataclass from values by field name, those of its groups included."""
    given: dict[str, Any] = {}
    for item in fields(kind):
        if _OPTION in item.metadata:
            if item.name in values:
                given[item.name] = values[item.name]
        elif is_dataclass(item.default_factory):
            inner: Any = item.default_factory
            given[item.name] = made(inner, values)
    return kind(**given)


class Options:
    """The base of the options of verbs, which takes the values of Python.

    A duration may be seconds, ``"24h"`` or a timedelta, a size bytes or ``"512m"``; a flag is a bool.

    Raises:
        UsageProblem: a value is not of its kind, out of its bounds, or not one of the choices.
    """

    def __post_init__(self) -> None:
        for item in fields(self):  # type: ignore[arg-type]
            face, value = item.metadata.get(_OPTION), getattr(self, item.name)
            if face is None:
                _require_group(value, item)
            elif value is not None or item.default is not None:
                taken = _as_kind(value, item.name, face)
                _require_choice(taken, item.name, face)
                object.__setattr__(self, item.name, taken)


def _require_group(value: object, item: Field[Any]) -> None:
    wanted: Any = item.default_factory
    if isinstance(wanted, type) and is_dataclass(wanted) and not isinstance(value, wanted):
        raise unusable(value, item.name, f"give {wanted.__name__}(...) of {wanted.__module__}")


def _as_kind(value: Any, name: str, face: Option) -> Any:
    """Return a value as the field has it; UsageProblem if it is not of the kind of the option."""
    match face.kind:
        case Kind.FLAG:
            return as_flag(value, name)
        case Kind.DURATION | Kind.SECONDS:
            return as_seconds(value, name)
        case Kind.SIZE:
            return as_size(value, name)
        case Kind.COUNT | Kind.NUMBER:
            return as_count(value, name, max(face.least, face.kind is Kind.COUNT), face.most)
        case Kind.MOMENT:
            return as_write_id_or_time(value, name)
        case Kind.LIST | Kind.NAMES:
            return as_texts(value, name)
        case Kind.PAIRS:
            return as_pairs(value, name)
        case Kind.COLUMNS:
            return as_columns(value, name)
    return as_text(os.fspath(value) if isinstance(value, os.PathLike) else value, name)


def _require_choice(value: Any, name: str, face: Option) -> None:
    for text in value if isinstance(value, tuple) else (value,):
        if face.choices and text not in face.choices:
            near = did_you_mean(str(text), face.choices)
            raise UsageProblem(f"{name} cannot be {text!r}", f"it is one of {', '.join(face.choices)}", near)


@dataclass(frozen=True, kw_only=True)
class TrashOptions(Options):
    """The options by which a cleaning removes files: to a trash, or at once."""

    no_trash: bool = option(
        False, "--no-trash", typed=True, help="Delete at once instead of moving to the location's trash."
    )

    @property
    def how(self) -> str:
        """Return the destination, as :class:`acidctl.cleaning.apply.How` names it."""
        return "delete" if self.no_trash else "trash"


@dataclass(frozen=True, kw_only=True)
class LockOptions(Options):
    """The options by which other processes are kept away from a location."""

    lock: bool | None = option(
        None,
        "--lock/--no-lock",
        kind=Kind.FLAG,
        help="Lock each location, so that no two runs work on it at once. Default: if the store can lock.",
    )
    lock_wait: float = option(0.0, "--lock-wait", help="Wait this long for another run's lock, e.g. 10m.")
    break_lock: bool = option(
        False,
        "--break-lock",
        typed=True,
        help="Remove a lock that is damaged or held by another machine, if you know that its process has ended.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.lock is False and (self.lock_wait or self.break_lock):
            raise UsageProblem("--no-lock takes no lock", "", "leave out --lock-wait and --break-lock")

    def locking(self, tell: Callable[[str], None] | None = None, age: float = 0.0) -> Locking:
        """Return how a location is locked.

        Args:
            tell: called with a sentence on a lock that was taken over, is waited for, or cannot be held.
            age: the age in seconds that decided what is done under the lock; 0 if no age decided.
        """
        from acidctl.location.change.lock import Locking

        return Locking(self.lock, self.lock_wait, self.break_lock, tell, age)


@dataclass(frozen=True, kw_only=True)
class WorkOptions(Options):
    """The options for the number of locations at a time, and for the length of a run."""

    deadline: float | None = option(None, "--deadline", kind=Kind.DURATION, help="End after this long, e.g. 2h or 30m.")
    jobs: int = option(4, "--jobs", kind=Kind.COUNT, help="Locations at a time.")
