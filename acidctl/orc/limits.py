"""Limit what one file may cost, far above real tables, so that a hostile file causes an error.

Each limit is an environment variable, ``ACIDCTL_LIMIT_<NAME>``, or a key of the table ``[limits]`` of a configuration:
a whole number, optionally with K, M, G or T (powers of 1024) behind it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from acidctl.base.errors import BadDataError, UsageProblem

_SIZE = re.compile(r"(\d{1,18})([KMGT]?)(?:i?B)?", re.ASCII | re.IGNORECASE)
_POWERS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")

PREFIX = "ACIDCTL_LIMIT_"
"""The prefix of the environment variables."""


class LimitError(BadDataError):
    """A file is hostile, damaged, or larger than a limit; only its owner can tell which."""


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit; `meaning` describes it in one sentence, and `name` stands in messages."""

    name: str
    default: int
    is_bytes: bool
    meaning: str

    @property
    def variable(self) -> str:
        """Return the environment variable that sets the limit."""
        return PREFIX + self.key.replace("-", "_").upper()

    @property
    def key(self) -> str:
        """Return the name of the limit in the table ``[limits]`` of a configuration."""
        return self.name.removeprefix("max-")

    @property
    def value(self) -> int:
        """Return the present value.  Raises UsageProblem if the variable is not a number."""
        text = os.environ.get(self.variable)
        return _parsed(self.variable, text) if text else self.default

    def shown(self, amount: float) -> str:
        """Return an amount as text for people."""
        return size_text(amount) if self.is_bytes else f"{amount:,.0f}"

    def check(self, amount: float, path: str, what: str) -> None:
        """Refuse, by LimitError, an amount above the limit; `what` is its name, ``decompressed size of stripe 1``."""
        if amount > self.value:
            raise self.error(path, what, amount)

    def error(self, path: str, what: str, amount: float | None = None) -> LimitError:
        """Return the error for an amount above the limit; None if the amount is unknown."""
        return self.explained(f"{path}: {what} is {'too large' if amount is None else self.shown(amount)}")

    def explained(self, what: str) -> LimitError:
        """Return the error for a sentence that says which amount is above the limit."""
        limit = f"{self.name} ({self.shown(self.value)})"
        why = f"the file is damaged, made to use up memory, or larger than the limit {limit}"
        raised = f"set {self.variable}, or {self.key} below [limits] in the configuration, higher"
        return LimitError(what, why, f"if the file is sound and you have the memory, {raised}")


COLUMNS = Limit("max-columns", 50_000, False, "Columns of a file, those inside structs, lists and maps included.")
STRIPES = Limit("max-stripes", 1_000_000, False, "Stripes of a file.")
TAIL = Limit("max-tail", 128 << 20, True, "Decompressed bytes of a footer, of a file's stripe statistics or an index.")
STRIPE_MEMORY = Limit(
    "max-stripe-memory",
    2 << 30,
    True,
    "Decoded bytes of those columns of one stripe that are read; reading takes two to three times as much memory.",
)

RATIO = Limit(
    "max-ratio", 10_000, False, "Decoded bytes for each byte of a file, where they are more than 16 GiB in all."
)

LIMITS = (COLUMNS, STRIPES, TAIL, STRIPE_MEMORY, RATIO)

_ALWAYS = 16 << 30  # decoded bytes that every file may have; decoding them takes less than a minute
_A_PART = 1 << 20  # bytes that can be decoded in the time that it takes to start with a stripe or row group


@dataclass(slots=True)
class DecodingBudget:
    """Counts the bytes decoded from one open file of `size` bytes; each stripe or row group counts once."""

    path: str
    size: int
    _parts: dict[int, float] = field(default_factory=dict)
    _total: float = 0.0
    _error: LimitError | None = None

    def require(self) -> None:
        """Refuse, by LimitError, further reads once the file has used up its budget: even checks take time."""
        if self._error is not None:
            raise self._error

    def add_part(self, part: int, amount: float) -> None:
        """Count the decoded bytes of a stripe or row group; errors as for :meth:`add`."""
        self.add(part, amount + _A_PART)

    def add(self, part: int, amount: float) -> None:
        """Count decoded bytes of a part that takes no time to start with.

        Raises LimitError if the total is too large for the size of the file.
        """
        more = amount - self._parts.get(part, 0.0)
        if more <= 0:
            return
        self._parts[part] = amount
        self._total += more
        if self._total > _ALWAYS:
            what = f"number of bytes that its {size_text(self.size)} unpack to, for each of them,"
            try:
                RATIO.check(self._total / max(1, self.size), self.path, what)
            except LimitError as error:
                self._error = error
                raise


def size_text(amount: float) -> str:
    """Return a number of bytes for people: ``5.1 GiB``."""
    power = 0
    while amount >= 1024 and power < len(_UNITS) - 1:
        amount /= 1024
        power += 1
    return f"{amount:.0f} {_UNITS[power]}" if float(amount).is_integer() else f"{amount:.1f} {_UNITS[power]}"


_configured: set[str] = set()  # environment variables, which belong to the process, that a configuration has set


def configure(values: Mapping[str, str]) -> None:
    """Apply the limits of a configuration if the environment does not set them, here and in child processes.

    Args:
        values: texts by :attr:`Limit.key`; they replace those of the last call.

    Raises:
        UsageProblem: the environment has a variable for a limit that does not exist.
    """
    variables = [limit.variable for limit in LIMITS]
    for name in sorted(os.environ):
        if name.startswith(PREFIX) and name not in variables:
            raise UsageProblem(f"{name} is set, but there is no such limit", "", f"there are {', '.join(variables)}")
    for variable in _configured:
        os.environ.pop(variable, None)
    _configured.clear()
    for limit in LIMITS:
        if limit.key in values and not os.environ.get(limit.variable):
            os.environ[limit.variable] = values[limit.key]
            _configured.add(limit.variable)


def check_value(limit: Limit, text: str) -> None:
    """Refuse a text that cannot be the value of a limit, by UsageProblem."""
    _parsed(limit.key, text)


@lru_cache(maxsize=16)
def _parsed(variable: str, text: str) -> int:
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        hint = "write a whole number, with K, M, G or T behind it"
        raise UsageProblem(f"{variable} is {text[:40]!r}", "it is not a size", hint)
    return int(match.group(1)) << _POWERS[match.group(2).upper()]
