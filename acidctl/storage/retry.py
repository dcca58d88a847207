"""Repeat requests that may succeed the next time, if they change nothing or may be done twice."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from acidctl.base.errors import StorageError, UsageProblem

TIMEOUT = 60.0
RETRIES = 3
_FIRST_WAIT = 0.2
_LONGEST_WAIT = 5.0
_JITTER = 0.2

_Result = TypeVar("_Result")


class PassingError(StorageError):
    """A failure that may soon be over: no connection, no answer in time, a NameNode on standby or starting."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """A time limit for one answer, and a number of repetitions of a request.

    Attributes:
        timeout: seconds to wait for one answer; a request is not repeated once this much time has passed.
        retries: the most repetitions after the first request.
    """

    timeout: float = TIMEOUT
    retries: int = RETRIES

    @classmethod
    def of(cls, options: Mapping[str, str]) -> RetryPolicy:
        """Return the policy of the storage options ``timeout`` and ``retries``.

        Raises UsageProblem if they are invalid.
        """
        try:
            timeout = float(options.get("timeout", TIMEOUT))
        except ValueError:
            timeout = 0.0
        if not 0 < timeout < 1e6:
            raise UsageProblem(f"not a number of seconds: timeout={options['timeout']}", "", "give one above 0")
        retries = options.get("retries", str(RETRIES))
        if not (retries.isascii() and retries.isdigit()):
            raise UsageProblem(f"not a number of tries: retries={retries}", "", "give 0 or more")
        return cls(timeout, int(retries))

    def call(self, question: Callable[[], _Result]) -> _Result:
        """Call `question`, and repeat it while it raises a :class:`PassingError`, waiting longer each time.

        The call must change nothing, or may be done twice.
        """
        latest, wait = time.monotonic() + self.timeout, _FIRST_WAIT
        for _ in range(self.retries):
            try:
                return question()
            except PassingError:
                if time.monotonic() + wait >= latest:
                    raise
            time.sleep(wait + random.uniform(0, _JITTER))
            wait = min(2 * wait, _LONGEST_WAIT)
        return question()
