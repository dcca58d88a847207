"""The highest write id that lies inside no delta, against one that tries them all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acidctl.acid.layout import below_all, crossing, straddles
from acidctl.acid.names import AcidDirectory, Kind, format_directory, parse_directory


def directory(kind: Kind, low: int, high: int) -> AcidDirectory:
    low = high if kind is Kind.BASE else low
    return AcidDirectory(format_directory(kind, low, high), kind, low, high)


DIRECTORIES = st.lists(st.builds(directory, st.sampled_from(list(Kind)), st.integers(1, 12), st.integers(1, 12)))


@given(DIRECTORIES, st.integers(0, 12))
def test_the_highest_one_that_nothing_lies_across(directories: list[AcidDirectory], write_id: int) -> None:
    """Format section 8.1: "It moves nothing across a directory that begins at or below the output's last write id and
    ends above it".
    """
    found, by = below_all(directories, write_id)
    model = next(w for w in range(write_id, -2, -1) if not any(straddles(one, w) for one in directories))
    assert found == model
    assert (found == write_id) == (not by)
    assert all(
        (one in directories and one.min_write_id <= write_id < one.max_write_id) or found < write_id for one in by
    )


def test_the_example_of_a_snapshot_below_a_compacted_delta() -> None:
    """`delta_1_3` was compacted; a list that ends at 2 sees `delta_1_1` and `delta_2_2` only."""
    listed = [directory(Kind.DELTA, 1, 3), directory(Kind.DELTA, 1, 1), directory(Kind.DELTA, 2, 2)]
    assert below_all(listed, 2) == (0, (listed[0],))
    assert below_all(listed, 3) == (3, ())
    assert below_all([directory(Kind.BASE, 5, 5)], 3) == (3, ())


@pytest.mark.parametrize(
    ("name", "low", "high", "crosses"),
    [
        ("base_0000007_v0000002", 1, 12, True),
        ("base_0000012_v0000002", 1, 12, False),
        ("base_0000004_v0000002", 5, 12, False),
        ("delta_0000001_0000008_v0000002", 5, 12, True),
        ("delete_delta_0000004_0000005_v0000002", 5, 12, True),
        ("delta_0000005_0000008_v0000002", 5, 12, False),
        ("delta_0000001_0000012_v0000002", 5, 12, False),
        ("delta_0000001_0000004", 5, 12, False),
        ("delta_0000005_0000012_v0000002", 5, 12, True),
        ("delete_delta_0000005_0000012_v0000002", 5, 12, True),
        ("delta_0000005_0000012", 5, 12, True),
        ("delta_0000005_0000005", 5, 5, True),
        ("delta_0000005_0000005_0001", 5, 5, False),
    ],
)
def test_what_would_be_read_beside_a_compacted_delta(name: str, low: int, high: int, crosses: bool) -> None:
    directory = parse_directory(name)
    assert directory is not None
    assert crossing([directory], low, high) == (directory if crosses else None)
