"""Values that are held as bytes."""

from __future__ import annotations

import random
from dataclasses import dataclass

from acidctl.base.packed import Packed


@dataclass(frozen=True, slots=True)
class Held:
    store: object
    names: tuple[str, ...]


class Store:
    """An object that must not be copied."""


def test_values_come_back_with_the_objects_that_they_share() -> None:
    store = Store()
    values = [Held(store, (f"delta_{number}",)) for number in range(5)]
    packed = Packed(values, lambda held: (held.store, None))
    assert list(packed) == packed[:] == values
    assert packed[3].names == ("delta_3",)
    assert all(held.store is store for held in packed)
    assert packed[1] is not values[1]


def test_few_values_are_held_as_they_are() -> None:
    values = [Held(Store(), ())]
    assert Packed(values, lambda held: (held.store,), is_needed=False)[0] is values[0]
    assert list(Packed[Held]([], lambda held: (held.store,))) == []


def test_a_value_like_the_first_takes_few_bytes() -> None:
    numbers = random.Random(1)
    names = tuple(numbers.randbytes(20).hex() for _ in range(100))
    packed = Packed([Held(None, (*names, str(number))) for number in range(3)], lambda _: ())
    assert [len(data) < 200 for data in packed._data] == [True] * 3
    assert [held.names[-1] for held in packed] == ["0", "1", "2"]


def test_of_equal_objects_that_values_share_the_first_is_held() -> None:
    lists = [(1, 2), (1, 2), (1, 2), (3,), (1, 2)]
    values = [Held(tuple(map(int, ids)), (str(number),)) for number, ids in enumerate(lists)]
    packed = Packed(values, lambda held: (held.store,))
    assert [held.store for held in packed] == lists
    assert packed[0].store is packed[1].store is packed[2].store is values[0].store
    assert len(packed._shared) == 3
