"""How far a task is, told from inside of it: bytes of its input that are done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_listener: ContextVar[Callable[[int], None] | None] = ContextVar("listener", default=None)


@contextmanager
def telling(listener: Callable[[int], None]) -> Iterator[None]:
    """Within the block `listener` hears of all bytes that are done."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def done(count: int) -> None:
    """So many bytes of the input are read, and what stays of them is written."""
    if listener := _listener.get():
        listener(count)


def through(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The chunks of an input, each told when it has been taken."""
    for chunk in chunks:
        yield chunk
        done(len(chunk))
