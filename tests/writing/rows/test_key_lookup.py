"""Rows found by their key."""

from __future__ import annotations

import datetime

import pyarrow as pa

from acidctl.orc.read.wide_timestamps import widened
from acidctl.writing.rows.key_lookup import KeyLookup, key_numbers


def test_timestamps_are_the_same_key_in_every_unit_and_form() -> None:
    near, far = datetime.datetime(2020, 1, 1, 0, 0, 0, 5), datetime.datetime(9999, 12, 31)
    known = widened(pa.array([far, near, None], pa.timestamp("us")))
    lookup = KeyLookup([known, pa.array([1, 1, 1])])
    asked = pa.array([near, None, near], pa.timestamp("ns"))
    assert list(lookup.find([asked, pa.array([1, 1, 2])])) == [1, -1, -1]
    assert list(lookup.find([known, pa.array([1, 1, 1])])) == [0, 1, -1]


def test_zeros_and_nan_are_the_same_key_in_every_form() -> None:
    nan = float("nan")
    lookup = KeyLookup([pa.array([-0.0, -nan, 1.5], pa.float32())])
    assert list(lookup.find([pa.array([nan, 0.0, -0.0, 1.5, None], pa.float32())])) == [1, 0, 0, 2, -1]


def test_only_equal_keys_have_the_same_number() -> None:
    numbers = list(key_numbers([pa.array([1, 1, 1, None, 2]), pa.array(["a", "b", "a", "a", "b"])]))
    assert numbers[0] == numbers[2]
    assert numbers[3] == -1
    assert len(set(numbers)) == 4
