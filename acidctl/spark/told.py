"""Errors of acidctl inside of failures of Spark, which keeps only their texts."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

from acidctl.base.errors import AcidctlError
from acidctl.spark.worker import as_acidctl_error

_MESSAGE = re.compile(
    r"HiveAcidError: \[(?P<code>[a-z-]+)\] (?P<what>[^\n]*)(?:\n  why: (?P<why>[^\n]*))?(?:\n  hint: (?P<hint>[^\n]*))?"
)


class HiveAcidError(Exception):
    """An error of acidctl inside a failure of Spark: a line that says what, then why and what to do.

    Spark shows it as the end of a Python traceback; :func:`explain` finds it there.
    """


def explain(error: BaseException) -> AcidctlError | None:
    """Return the error of acidctl's inside one that Spark raised; None when Spark failed by itself.

    try:
        orders.count()
    except Exception as error:
        print(explain(error) or error)
    """
    match = _MESSAGE.search(str(error))
    if match is None:
        return None
    kind = next((cls for cls in _kinds(AcidctlError) if cls.code == match["code"]), AcidctlError)
    return kind(match["what"], match["why"] or "", match["hint"] or "")


def _kinds(of: type[AcidctlError]) -> Iterator[type[AcidctlError]]:
    """Yield a class of errors and those below it, each after the one whose code it may share."""
    yield of
    for below in of.__subclasses__():
        yield from _kinds(below)


@contextlib.contextmanager
def told() -> Iterator[None]:
    """Raise errors as acidctl words them, without frames that nobody needs."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, AcidctlError | ImportError | MemoryError):
            raise  # a bug: its own traceback says more
        ours = as_acidctl_error(error)
        parts = ((f"[{ours.code}]", ours.what), ("  why:", ours.why), ("  hint:", ours.hint))
        lines = [" ".join([name, *text.split("\n")]) for name, text in parts if text]
        raise HiveAcidError("\n".join(lines)) from None
