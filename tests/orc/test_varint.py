"""Numbers of 7 bits a byte, against Protocol Buffers' own, and those that no writer writes."""

from __future__ import annotations

import pytest
from google.protobuf.internal import encoder, wire_format  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from acidctl.orc.read.integer_runs import bound_of_runs, progression, unsigned_runs
from acidctl.orc.varint import TooLongError, encoded, signed, unsigned

ENDLESS = b"\x80" * 11 + b"\1"


def written(value: int) -> bytes:
    parts: list[bytes] = []
    encoder._EncodeVarint(parts.append, value)
    return b"".join(parts)


@given(st.integers(0, 2**64 - 1), st.binary(max_size=3), st.binary(max_size=3))
def test_unsigned_numbers_are_those_of_protocol_buffers(value: int, before: bytes, behind: bytes) -> None:
    raw = written(value)
    assert unsigned(before + raw + behind, len(before)) == (value, len(before) + len(raw))


@given(st.integers(-(2**63), 2**63 - 1))
def test_signed_numbers_are_those_of_protocol_buffers(value: int) -> None:
    raw = written(wire_format.ZigZagEncode(value))
    assert signed(raw, 0) == (value, len(raw))


@given(st.integers(128, 2**64 - 1))
def test_number_that_is_cut_short_is_refused(value: int) -> None:
    with pytest.raises(IndexError):
        unsigned(written(value)[:-1], 0)


def test_one_that_does_not_end_is_given_up() -> None:
    """Each further byte would take as long as all before it together."""
    with pytest.raises(TooLongError):
        unsigned(ENDLESS, 0)
    repeat = b"\xc0\x01"  # two values, a first one and a difference
    assert progression(repeat + ENDLESS + b"\0", 2) is None
    assert bound_of_runs(repeat + ENDLESS + b"\0", 2) == (0.0, 0.0)
    with pytest.raises(TooLongError):
        list(unsigned_runs(repeat + ENDLESS + b"\0", version=2))


def test_a_patch_of_more_bits_than_a_float_has_is_not_lost() -> None:
    """A gap of 255 and a patch of 48 ones: rounded they would be a gap of 256 without a patch."""
    count, patch = 300, (1 << 48) - 1
    head = bytes((0x81, (count - 1) & 0xFF, 29, 7 << 5 | 1))
    run = head + b"\0" + bytes(count // 8 + 1) + (255 << 48 | patch).to_bytes(7, "big")
    ((values, times),) = unsigned_runs(run, version=2)
    assert (len(values), times, values.argmax(), values.sum()) == (count, 1, 255, float(patch << 1))


def test_encoded_reads_back() -> None:
    for value in (0, 1, 127, 128, 2**63, 2**64 - 1):
        assert unsigned(encoded(value), 0)[0] == value
