"""Directories of which a listing alone does not show that they are finished."""

from __future__ import annotations

from acidctl.acid.listing import Entry, Listing
from acidctl.acid.reasons import Code
from acidctl.acid.state import Lists, select
from acidctl.acid.unfinished import doubtful
from acidctl.acid.writeids import ValidWriteIds


def test_a_batch_with_a_flush_length_is_open_and_its_neighbour_is_not() -> None:
    paths = [
        ("delta_0000001_0000001_0000", True), ("delta_0000001_0000001_0000/bucket_00000", False),
        ("delta_0000002_0000005", True), ("delta_0000002_0000005/bucket_00000", False),
        ("delta_0000002_0000005/bucket_00000_flush_length", False),
    ]  # fmt: skip
    listing = Listing("/t", tuple(Entry(path, 0 if is_dir else 9, 1.0, is_dir) for path, is_dir in paths))
    everything = ValidWriteIds()
    state = select(listing, everything, None, {})
    found = doubtful(listing, state, Lists(everything, None, {}))
    assert {name: why.code for name, why in found.items()} == {"delta_0000002_0000005": Code.WRITER_AT_WORK}
