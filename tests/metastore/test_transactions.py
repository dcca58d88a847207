"""Lists of transactions and write ids, from what a metastore answers: right, or refused where they contradict
themselves.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.metastore.fake_hive import FakeHive
from support.metastore.fake_metastore import FakeMetastore, FakeTables, fake_metastore, java_bits

from acidctl.acid.names import MAXL
from acidctl.base.errors import NotFoundError
from acidctl.metastore import interface
from acidctl.metastore.client import Metastore
from acidctl.metastore.errors import MetastoreError
from acidctl.metastore.settings import find_settings
from acidctl.metastore.transactions import Transactions, bits


@given(st.lists(st.booleans(), max_size=200), st.binary(max_size=5))
def test_bits_are_javas_least_significant_first(wanted: list[bool], more: bytes) -> None:
    data = java_bits(wanted)
    assert bits(data, len(wanted)) == wanted
    assert bits(data.ljust((len(wanted) + 7) // 8, b"\0") + more, len(wanted)) == wanted


def test_bits_beyond_the_ids_cost_nothing() -> None:
    assert bits(b"\1" + bytes(50 << 20), 3) == [True, False, False]
    assert bits(b"", 2) == [False, False]


def served(answer: interface.OpenTxns | None, ids: interface.TableWriteIds | None) -> FakeMetastore:
    tables = FakeTables()
    tables.high_watermark = 10
    answers = tables.answers()
    if answer:
        answers["get_open_txns"] = lambda: answer
        answers["get_open_txns_req"] = lambda _: answer
    if ids:
        answers["get_valid_write_ids"] = lambda _: interface.ValidWriteIdsResponse((ids,))
    return FakeMetastore(answers)


IDS = st.lists(st.integers(-3, 30) | st.sampled_from([MAXL, -MAXL]), max_size=5)
HIGH = st.integers(-2, 30) | st.sampled_from([MAXL, -MAXL])


@settings(max_examples=150, deadline=None)
@given(high=HIGH, ids=IDS, aborted=st.binary(max_size=2), least=st.none() | st.integers(-2, 30))
def test_a_list_is_right_or_refused(high: int, ids: list[int], aborted: bytes, least: int | None) -> None:
    """The model: a client that knows every id by itself."""
    sane = 0 <= high < MAXL and all(1 <= one <= high for one in ids) and len(set(ids)) == len(ids)
    is_aborted = {one: bool(int.from_bytes(aborted, "little") >> at & 1) for at, one in enumerate(ids)}
    server = served(
        interface.OpenTxns(high, tuple(ids), least, aborted),
        interface.TableWriteIds("db.t", high, tuple(ids), least, aborted),
    )
    try:
        if not sane:
            with pytest.raises(MetastoreError, match="contradicts itself"):
                Transactions(server.client())
            return
        found = Transactions(server.client())
        listed = found.write_ids("db.t")
    finally:
        server.stop()
    for one in range(1, 32):
        visible = one <= high and one not in ids
        assert found.txns.is_valid(one) == listed.is_valid(one) == visible
        assert found.txns.is_aborted(one) == listed.is_aborted(one) == is_aborted.get(one, False)
    opened = [one for one in ids if not is_aborted[one]]
    assert found.txns.min_open == min(opened, default=MAXL)
    assert listed.min_open <= min(opened, default=MAXL)


@pytest.mark.parametrize(
    "ids",
    [
        interface.TableWriteIds("db.t", -1),
        interface.TableWriteIds("db.t", MAXL),
        interface.TableWriteIds("db.t", 3, (4,)),
        interface.TableWriteIds("db.t", 3, (0,)),
        interface.TableWriteIds("db.t", 3, (2, 2), None, b"\1"),
    ],
)
def test_write_ids_that_contradict_themselves_are_refused(ids: interface.TableWriteIds) -> None:
    server = served(None, ids)
    try:
        with pytest.raises(MetastoreError, match=r"contradicts itself.*write ids of db\.t"):
            Transactions(server.client()).write_ids("db.t")
    finally:
        server.stop()


def test_a_table_of_which_the_server_says_nothing_has_no_write_ids() -> None:
    server = served(None, interface.TableWriteIds("db.other", 3))
    try:
        with pytest.raises(NotFoundError, match=r"no write ids of db\.t"):
            Transactions(server.client()).write_ids("db.t")
    finally:
        server.stop()


def test_a_catalog_in_front_of_a_name_is_left_out() -> None:
    server = served(None, interface.TableWriteIds("hive.DB.T", 3))
    try:
        assert Transactions(server.client()).write_ids("db.t").high_watermark == 3
    finally:
        server.stop()


def test_the_write_ids_of_many_tables_are_asked_for_by_hundreds() -> None:
    tables = FakeTables()
    names = [f"db.t{number}" for number in range(950)]
    with fake_metastore(tables.answers()) as server:
        found = Transactions(server.client())
        found.load(names)
        assert found.write_ids("db.t949").high_watermark == 0
        assert server.calls.count("get_valid_write_ids") == 10 + 1  # and one that finds out whether there are any


def test_a_cleaner_waits_for_a_transaction_that_only_reads() -> None:
    """Hive 4's plain list of open transactions has none of those."""
    with FakeHive(4) as fake:
        reader = fake.begin(type=interface.TxnType.READ_ONLY)
        writer = fake.begin()
        found = find_settings({"uris": fake.address}, {})
        assert found
        taken = Transactions(Metastore(found))
        assert (taken.txns.min_open, taken.of_cleaner.min_open) == (writer, reader)
