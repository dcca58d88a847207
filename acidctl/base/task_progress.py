"""The progress of a task: the code that runs it reports how many bytes of its input are done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_listener: ContextVar[Callable[[int], None] | None] = ContextVar("listener", default=None)


@contextmanager
def telling(listener: Callable[[int], None]) -> Iterator[None]:
    """Call `listener` with all bytes that are done within the block."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def done(count: int) -> None:
    """Report that some bytes of the input were read, and their output written."""
    if listener := _listener.get():
        listener(count)


def through(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Pass the chunks of an input on, and report each after it was taken."""
    for chunk in chunks:
        yield chunk
        done(len(chunk))
