"""Hold listings and footers of many locations as bytes, in a sequence: objects take fifty times as much memory."""

from __future__ import annotations

import io
import pickle
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar, overload

_T = TypeVar("_T")

_WINDOW = 32768
"""The bytes that zlib can refer back to."""


class Packed(Sequence[_T]):
    """A sequence whose values are unpickled from bytes at each access.

    Each value is compressed by reference to the first: locations of one table have much in common.

    Args:
        shared: returns objects of a value that must not be copied, such as its store. Of equal ones in successive
            values only the first is held.
        is_needed: False to hold few values as they are.
    """

    def __init__(
        self, values: Iterable[_T], shared: Callable[[_T], Iterable[object]], *, is_needed: bool = True
    ) -> None:
        self._shared: list[object] = []
        self._first = b""
        self._data: list[Any] = list(self._packed(values, shared) if is_needed else values)
        self._is_packed = is_needed

    def _packed(self, values: Iterable[_T], shared: Callable[[_T], Iterable[object]]) -> Iterator[bytes]:
        empty = None
        latest: dict[int, int] = {}  # numbers of the objects of the value before, by their place among its objects
        for value in values:
            numbers: dict[int, int] = {}
            for place, item in enumerate(shared(value)):
                if item is not None:
                    if place not in latest or self._shared[latest[place]] != item:
                        latest[place] = len(self._shared)
                        self._shared.append(item)
                    numbers[id(item)] = latest[place]
            buffer = io.BytesIO()
            _Pickler(buffer, numbers).dump(value)
            if empty is None:
                self._first = buffer.getvalue()[-_WINDOW:]
                empty = zlib.compressobj(1, zdict=self._first)
            compressor = empty.copy()  # the first value is indexed once
            yield compressor.compress(buffer.getbuffer()) + compressor.flush()

    def __len__(self) -> int:
        return len(self._data)

    @overload
    def __getitem__(self, place: int) -> _T: ...
    @overload
    def __getitem__(self, place: slice) -> list[_T]: ...
    def __getitem__(self, place: int | slice) -> _T | list[_T]:
        if isinstance(place, slice):
            return [self._made(data) for data in self._data[place]]
        value: _T = self._made(self._data[place])
        return value

    def __iter__(self) -> Iterator[_T]:
        return map(self._made, self._data)

    def _made(self, data: Any) -> Any:
        if not self._is_packed:
            return data
        plain = zlib.decompressobj(zdict=self._first).decompress(data)
        return _Unpickler(io.BytesIO(plain), self._shared).load()


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, numbers: dict[int, int]) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._numbers = numbers

    def persistent_id(self, obj: object) -> int | None:
        return self._numbers.get(id(obj))


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, shared: Sequence[object]) -> None:
        super().__init__(file)
        self._shared = shared

    def persistent_load(self, pid: Any) -> object:
        return self._shared[pid]
