"""Random listings of a location, with the lists that a reader may have."""

from __future__ import annotations

from hypothesis import strategies as st

from acidctl.acid.listing import Entry, Listing
from acidctl.acid.names import MAXL, Kind, format_directory
from acidctl.acid.sidefiles import BaseFormat
from acidctl.acid.writeids import ValidTxns, ValidWriteIds

small = st.integers(0, 12)
statements = st.sampled_from([-1, -1, 0, 1, 2])
visibility = st.sampled_from([0, 0, 0, 20, 21, 22])


@st.composite
def directory_names(draw: st.DrawFn) -> str:
    kind = draw(st.sampled_from(list(Kind)))
    low = draw(small)
    high = low + draw(st.sampled_from([0, 0, 1, 3, 6]))
    statement = -1 if kind is Kind.BASE or low != high else draw(statements)
    txn = draw(visibility) if statement == -1 else 0
    return format_directory(kind, high if kind is Kind.BASE else low, high, statement, txn)


names = st.lists(directory_names(), unique=True, max_size=12)
originals = st.lists(st.sampled_from(["000000_0", "000001_0", "000000_0_copy_1", "sub/000000_0"]), unique=True)


@st.composite
def write_id_lists(draw: st.DrawFn) -> ValidWriteIds:
    hwm = draw(st.integers(0, 16))
    exceptions = draw(st.sets(st.integers(1, 16).filter(lambda i: i <= hwm), max_size=5) if hwm else st.just(set()))
    aborted = {i for i in exceptions if draw(st.booleans())}
    open_ids = tuple(sorted(exceptions - aborted))
    made = ValidWriteIds(hwm, open_ids[0] if open_ids else MAXL, open_ids, tuple(sorted(aborted)))
    return made.for_compactor() if draw(st.booleans()) else made


txn_lists = st.sampled_from([None, ValidTxns(30), ValidTxns(30, 21, (21,)), ValidTxns(30, MAXL, (), (21, 22))])


@st.composite
def cases(draw: st.DrawFn) -> tuple[Listing, ValidWriteIds, ValidTxns | None, dict[str, BaseFormat]]:
    listed = draw(names)
    entries = [Entry(f"{name}/bucket_00000", 1, None, False) for name in listed]
    entries += [Entry(name, 1, None, False) for name in draw(originals)]
    formats = {
        n: BaseFormat.COMPACTED for n in listed if n.startswith("base_") and "_v" not in n and draw(st.booleans())
    }
    return Listing("t", tuple(entries)), draw(write_id_lists()), draw(txn_lists), formats
