"""State selection against the unit tests of Hive, Trino, Impala and Doris, and the worked examples of the format."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.paths import DATA
from support.tables import whole

from acidctl.acid.listing import Entry, Listing
from acidctl.acid.reasons import Code
from acidctl.acid.sidefiles import BaseFormat
from acidctl.acid.state import AcidState, State, select
from acidctl.acid.writeids import ListReader, ValidTxns, ValidWriteIds

CASES = {case["id"]: case for case in json.loads((DATA / "acid-state-cases.json").read_text())}

# Every published case agrees with Hive 3/4 on what it asserts; one that did not would be listed here with its reason.
DIFFERENT: dict[str, str] = {}


def listing(*names: str, files: tuple[str, ...] = ()) -> Listing:
    """A location with directories (one data file each) and files."""
    entries = [Entry(name, 0, 1.0, True) for name in names]
    entries += [Entry(f"{name}/bucket_00000", 10, 1.0, False) for name in names]
    entries += [Entry(name, 10, 1.0, False) for name in files]
    return Listing("t", tuple(entries))


def names(state: AcidState, which: State) -> set[str]:
    return {verdict.name for verdict in state.in_state(which)}


def deltas(state: AcidState) -> list[str]:
    return [verdict.name for verdict in state.deltas]


def files_of(state: AcidState, case: dict[str, Any], prefix: str = "") -> set[str]:
    current = {v.name for v in state.in_state(State.CURRENT)}
    return {
        item["path"]
        for item in case["listing"]
        if not item["dir"]
        and item["path"].split("/")[0] in current
        and not any(part.startswith(("_", ".")) for part in item["path"].split("/"))
        and item["path"].startswith(prefix)
    }


@pytest.mark.parametrize("case_id", CASES)
def test_published_listings_give_the_published_state(case_id: str) -> None:
    if case_id in DIFFERENT:
        pytest.skip(DIFFERENT[case_id])
    case = CASES[case_id]
    mode = ListReader.COMPACTOR if case["mode"] == "compactor" else ListReader.READER
    write_ids = ValidWriteIds.parse(whole(case["valid_write_ids"]), mode=mode) if case["valid_write_ids"] else None
    txns = ValidTxns.parse(case["valid_txns"]) if case["valid_txns"] else None
    entries = tuple(Entry(i["path"], i["size"], None, i["dir"]) for i in case["listing"])
    state = select(Listing("t", entries), write_ids, txns)

    expect = case["expect"]
    known = {
        "base",
        "deltas",
        "obsolete",
        "originals",
        "obsolete_count",
        "obsolete_includes",
        "files",
        "files_include",
        "data_files",
        "delete_delta_files",
        "acid_version_validated",
    }
    assert set(expect) <= known
    if "base" in expect:
        assert (state.base.name if state.base else None) == expect["base"]
    if "deltas" in expect:
        assert deltas(state) == expect["deltas"]
    if "obsolete" in expect:
        assert names(state, State.OBSOLETE) == set(expect["obsolete"])
    if "originals" in expect:
        assert [entry.path for entry in state.originals] == expect["originals"]
    if "obsolete_count" in expect:
        assert len(names(state, State.OBSOLETE)) == expect["obsolete_count"]
    assert set(expect.get("obsolete_includes", [])) <= names(state, State.OBSOLETE)
    if "files" in expect:
        assert files_of(state, case) == set(expect["files"])
    assert set(expect.get("files_include", [])) <= files_of(state, case)
    if "data_files" in expect:
        found = files_of(state, case)
        deletes = {path for path in found if path.startswith("delete_delta_")}
        assert found - deletes == set(expect["data_files"])
        assert deletes == set(expect.get("delete_delta_files", []))


# --- the worked examples of format section 6.4 ---------------------------------------------------------------------


def ids(hwm: int, open_: tuple[int, ...] = (), aborted: tuple[int, ...] = ()) -> ValidWriteIds:
    return ValidWriteIds(hwm, min(open_, default=2**63 - 1), open_, aborted)


COMMITTED = ValidTxns(2000)


def check(
    state: AcidState,
    *,
    base: str | None,
    current: list[str],
    obsolete: set[str] = frozenset(),  # type: ignore[assignment]
    aborted: set[str] = frozenset(),  # type: ignore[assignment]
    ignored: set[str] = frozenset(),  # type: ignore[assignment]
) -> None:
    assert (state.base.name if state.base else None) == base
    assert deltas(state) == current
    assert names(state, State.OBSOLETE) == obsolete
    assert names(state, State.ABORTED) == aborted
    assert names(state, State.IGNORED) == ignored


def test_example_1_newest_base_hides_deltas_below_and_wide_deltas_those_inside() -> None:
    found = select(
        listing(
            "base_5",
            "base_10",
            "base_49",
            "delta_025_025",
            "delta_029_029",
            "delta_025_030",
            "delta_050_105",
            "delta_90_120",
        ),
        ids(100),
    )
    check(
        found,
        base="base_49",
        current=["delta_050_105"],
        obsolete={"base_5", "base_10", "delta_025_030", "delta_025_025", "delta_029_029"},
        ignored={"delta_90_120"},
    )


def test_example_2_without_a_base_originals_and_widest_deltas_count() -> None:
    files = ("000000_0", "000001_1", "000002_0", "random", "subdir/000000_0", "_done")
    found = select(
        listing("delta_025_025", "delta_029_029", "delta_025_030", "delta_050_100", "delta_101_101", files=files),
        ids(100),
    )
    assert [entry.path for entry in found.originals] == [
        "000000_0",
        "000001_1",
        "000002_0",
        "random",
        "subdir/000000_0",
    ]
    assert deltas(found) == ["delta_025_030", "delta_050_100"]
    assert names(found, State.IGNORED) == {"delta_101_101", "_done"}


EXAMPLE_3 = ("base_50", "delta_40_60", "delta_052_55", "delta_0060_60", "delta_00061_61", "delta_000062_62")


def test_example_3_deltas_that_straddle_the_base_count() -> None:
    check(
        select(listing(*EXAMPLE_3, "delta_0000063_63"), ids(100)),
        base="base_50",
        current=["delta_40_60", "delta_00061_61", "delta_000062_62", "delta_0000063_63"],
        obsolete={"delta_052_55", "delta_0060_60"},
    )


def test_example_4_statements_of_a_write_id_count_beside_each_other() -> None:
    found = select(
        listing(
            "base_50",
            "delta_40_60",
            "delta_052_55",
            "delta_0060_60_1",
            "delta_0060_60_4",
            "delta_0060_60_7",
            "delta_058_58",
            "delta_00061_61_0",
            "delta_000062_62_0",
            "delta_000062_62_3",
            "delta_0000063_63_0",
        ),
        ids(100),
    )
    check(
        found,
        base="base_50",
        current=["delta_40_60", "delta_00061_61_0", "delta_000062_62_0", "delta_000062_62_3", "delta_0000063_63_0"],
        obsolete={"delta_052_55", "delta_058_58", "delta_0060_60_1", "delta_0060_60_4", "delta_0060_60_7"},
    )


def test_example_5_delta_with_an_open_write_id_inside_is_current() -> None:
    found = select(listing("delta_1_1", "delta_2_5"), ids(100, (4,)))
    check(found, base=None, current=["delta_1_1", "delta_2_5"])
    assert found.deltas[1].reason.ids == (4,)


def test_example_6_deltas_of_an_open_write_id_are_ignored() -> None:
    check(
        select(listing("delta_1_1", "delta_2_5", "delta_4_4_1", "delta_4_4_3", "delta_101_101_1"), ids(100, (4,))),
        base=None,
        current=["delta_1_1", "delta_2_5"],
        ignored={"delta_4_4_1", "delta_4_4_3", "delta_101_101_1"},
    )


@pytest.mark.parametrize("hwm", [3, 4])
def test_example_7_delta_that_ends_above_a_compactors_watermark_is_ignored(hwm: int) -> None:
    found = select(listing("delta_1_1", "delta_2_5"), ids(hwm).for_compactor())
    check(found, base=None, current=["delta_1_1"], ignored={"delta_2_5"})


def test_example_8_delete_deltas_are_selected_like_deltas() -> None:
    listed = (
        "base_5",
        "base_10",
        "base_49",
        "delta_025_025",
        "delta_029_029",
        "delete_delta_029_029",
        "delta_025_030",
        "delete_delta_025_030",
        "delta_050_105",
        "delete_delta_050_105",
        "delete_delta_110_110",
    )
    check(
        select(listing(*listed), ids(100)),
        base="base_49",
        current=["delete_delta_050_105", "delta_050_105"],
        obsolete=set(listed) - {"base_49", "delete_delta_050_105", "delta_050_105", "delete_delta_110_110"},
        ignored={"delete_delta_110_110"},
    )


def test_example_9_delete_deltas_that_straddle_the_base_count() -> None:
    listed = (*EXAMPLE_3, "delta_0000063_63", "delete_delta_40_60", "delete_delta_052_55", "delete_delta_00064_64")
    check(
        select(listing(*listed), ids(100)),
        base="base_50",
        current=[
            "delete_delta_40_60",
            "delta_40_60",
            "delta_00061_61",
            "delta_000062_62",
            "delta_0000063_63",
            "delete_delta_00064_64",
        ],
        obsolete={"delete_delta_052_55", "delta_052_55", "delta_0060_60"},
    )


def test_example_10_delete_delta_inside_of_a_wide_delta_is_obsolete() -> None:
    found = select(listing("delta_40_60", "delete_delta_50_50"), ids(100))
    check(found, base=None, current=["delta_40_60"], obsolete={"delete_delta_50_50"})


def test_example_11_wide_delta_with_an_open_write_id_hides_those_inside() -> None:
    listed = (
        "delta_1_1",
        "delta_2_5",
        "delete_delta_2_5",
        "delete_delta_3_3",
        "delta_4_4_1",
        "delta_4_4_3",
        "delta_101_101_1",
    )
    check(
        select(listing(*listed), ids(100, (4,))),
        base=None,
        current=["delta_1_1", "delete_delta_2_5", "delta_2_5"],
        obsolete={"delete_delta_3_3"},
        ignored={"delta_4_4_1", "delta_4_4_3", "delta_101_101_1"},
    )


def test_example_12_base_hides_originals_and_older_bases() -> None:
    found = select(listing("base_10", "base_5", files=("000000_0", "000001_1")), ids(150))
    check(found, base="base_10", current=[], obsolete={"base_5", "000000_0", "000001_1"})
    assert found.originals == ()


SIX_TO_NINE = tuple(f"delta_{n}_{n}_0000" for n in range(6, 10))


def test_example_13_base_of_an_open_transaction_is_ignored() -> None:
    found = select(
        listing("base_0000005_v900", "base_0000008_v1000", *SIX_TO_NINE), ids(10), ValidTxns(1100, 1000, (1000,))
    )
    check(found, base="base_0000005_v900", current=list(SIX_TO_NINE), ignored={"base_0000008_v1000"})


def test_example_14_base_of_an_aborted_transaction_is_aborted() -> None:
    found = select(
        listing("base_5_v900", "base_7_v950", "base_8_v1000", *SIX_TO_NINE), ids(10), ValidTxns(1100, aborted=(1000,))
    )
    check(
        found,
        base="base_7_v950",
        current=list(SIX_TO_NINE[2:]),
        obsolete={"base_5_v900", *SIX_TO_NINE[:2]},
        aborted={"base_8_v1000"},
    )


def test_example_15_compacted_base_hides_the_overwrite_of_its_write_id() -> None:
    found = select(listing("base_25", "base_25_v26"), ids(25), COMMITTED)
    check(found, base="base_25_v26", current=[], obsolete={"base_25"})


def test_example_16_compacted_delta_counts_once_its_transaction_is_committed() -> None:
    listed = listing("base_5", "delta_6_6_00001", "delta_6_6_00002", "delta_6_6_v01000")
    check(
        select(listed, ids(10), COMMITTED),
        base="base_5",
        current=["delta_6_6_v01000"],
        obsolete={"delta_6_6_00001", "delta_6_6_00002"},
    )
    check(
        select(listed, ids(10), ValidTxns(2000, 1000, (1000,))),
        base="base_5",
        current=["delta_6_6_00001", "delta_6_6_00002"],
        ignored={"delta_6_6_v01000"},
    )


def test_example_17_widest_compacted_deltas_hide_all_inside() -> None:
    narrow = [f"delta_{n}_{n}" for n in range(1, 8)]
    wide = ["delta_1_3_v100", "delta_4_5_v101", "delta_1_5_v102", "delta_6_7_v123"]
    check(
        select(listing(*narrow, *wide), ids(10), COMMITTED),
        base=None,
        current=["delta_1_5_v102", "delta_6_7_v123"],
        obsolete={*narrow, "delta_1_3_v100", "delta_4_5_v101"},
    )


def test_example_18_compacted_delta_leaves_an_aborted_one_aborted() -> None:
    found = select(listing("delta_1_1", "delta_2_2", "delta_3_3", "delta_1_3_v1000"), ids(5, (), (2,)), COMMITTED)
    check(found, base=None, current=["delta_1_3_v1000"], obsolete={"delta_1_1", "delta_3_3"}, aborted={"delta_2_2"})


def test_example_19_deltas_of_aborted_write_ids_are_aborted() -> None:
    found = select(listing("base_5", *SIX_TO_NINE), ids(10, (), (7, 8, 9)))
    check(found, base="base_5", current=[SIX_TO_NINE[0]], aborted=set(SIX_TO_NINE[1:]))


def test_example_20_base_above_an_open_write_id_is_not_enough_history() -> None:
    found = select(listing("base_10_v50"), ids(12, (8,)), COMMITTED)
    check(found, base=None, current=[], ignored={"base_10_v50"})
    problem = found.history_problem
    assert problem
    assert (problem.code, problem.by, problem.ids) == (Code.NOT_ENOUGH_HISTORY, ("base_10_v50",), (8,))
    assert problem.value("high_watermark") == 12


def test_example_21_overwrite_of_an_open_write_id_is_ignored() -> None:
    found = select(listing("delta_1_1", "base_2", "delta_3_3"), ids(3, (2,)))
    check(found, base=None, current=["delta_1_1", "delta_3_3"], ignored={"base_2"})
    assert found.history_problem is None


def test_example_22_overwrite_of_an_aborted_write_id_is_aborted() -> None:
    found = select(listing("delta_1_1", "base_2", "delta_3_3"), ids(3, (), (2,)))
    check(found, base=None, current=["delta_1_1", "delta_3_3"], aborted={"base_2"})
    assert found.history_problem is None


def test_example_23_compacted_originals_are_hidden_by_their_base() -> None:
    found = select(
        listing("base_-9223372036854775808", "delta_10000001_10000001_0000", files=("000000_0",)), ids(10000001)
    )
    check(
        found,
        base="base_-9223372036854775808",
        current=["delta_10000001_10000001_0000"],
        obsolete={"000000_0"},
    )


# --- pitfalls that selection decides ---------------------------------------------------------------------------


def test_pitfall_1_wide_ids_sort_as_numbers() -> None:
    found = select(listing("delta_10000001_10000001_0000", "delta_9999999_9999999_0000"), ids(10000001))
    assert deltas(found) == ["delta_9999999_9999999_0000", "delta_10000001_10000001_0000"]
    assert select(listing("base_5", "base_10")).base.name == "base_10"  # type: ignore[union-attr]


def test_pitfall_2_some_range_is_current() -> None:
    found = select(listing("delta_2_5"), ValidWriteIds.parse("t:100:4:4:"))
    assert deltas(found) == ["delta_2_5"]
    assert found.deltas[0].reason.code == "partly-committed"


def test_deltas_that_are_wider_come_first_and_deletes_before_inserts() -> None:
    found = select(listing("delta_1_1_0", "delta_1_1_1", "delta_1_5_v9"), txns=COMMITTED)
    check(found, base=None, current=["delta_1_5_v9"], obsolete={"delta_1_1_0", "delta_1_1_1"})
    found = select(listing("delete_delta_2_2_0000", "delta_2_2_0001"))
    assert deltas(found) == ["delete_delta_2_2_0000", "delta_2_2_0001"]


def test_pitfall_4_ignored_is_neither_obsolete_nor_aborted() -> None:
    found = select(
        listing("delta_7_7", "delta_12_12", "base_8_v1000", "delta_3_3", "delta_1_3"),
        ids(10, (7,), (3,)),
        ValidTxns(1100, 1000, (1000,)),
    )
    check(
        found,
        base=None,
        current=["delta_1_3"],
        aborted={"delta_3_3"},
        ignored={"delta_7_7", "delta_12_12", "base_8_v1000"},
    )


def test_pitfall_5_overwrite_and_compacted_base() -> None:
    write_ids = ValidWriteIds.parse("t:6:4:4:")
    plain = select(listing("base_5", "delta_4_4"), write_ids)
    assert plain.base and plain.base.name == "base_5"
    compacted = select(listing("base_5"), write_ids, base_formats={"base_5": BaseFormat.COMPACTED})
    assert compacted.base is None and compacted.history_problem
    visible = select(listing("base_5_v9"), write_ids, COMMITTED)
    assert visible.base is None and visible.history_problem
    open_overwrite = select(listing("base_4"), write_ids)
    assert open_overwrite.base is None and not open_overwrite.history_problem


def test_pitfall_6_originals_order_is_that_of_the_path_text() -> None:
    files = (
        "000000_0_copy_2",
        "000000_0",
        "000000_1",
        "000000_0_copy_10",
        "HIVE_UNION_SUBDIR_2/000000_0",
        "000000_0_copy_1",
        "HIVE_UNION_SUBDIR_15/000000_0",
        "HIVE_UNION_SUBDIR_1/000000_0",
    )
    assert [entry.path for entry in select(listing(files=files)).originals] == [
        "000000_0",
        "000000_0_copy_1",
        "000000_0_copy_10",
        "000000_0_copy_2",
        "000000_1",
        "HIVE_UNION_SUBDIR_1/000000_0",
        "HIVE_UNION_SUBDIR_15/000000_0",
        "HIVE_UNION_SUBDIR_2/000000_0",
    ]


def test_pitfall_11_hidden_names_are_not_data() -> None:
    files = ("_tmp_x/base_99/bucket_00000", ".hive-staging/000000_0", "_SUCCESS", "_tmp.delta_1_1_0/000000_0.manifest")
    found = select(listing("delta_1_1", files=files))
    check(
        found,
        base=None,
        current=["delta_1_1"],
        ignored={"_tmp_x", ".hive-staging", "_SUCCESS", "_tmp.delta_1_1_0"},
    )


def test_pitfall_12_a_truncated_base_hides_what_is_below() -> None:
    entries = (Entry("base_7/_metadata_acid", 10, None, False), Entry("delta_6_6/bucket_00000", 10, None, False))
    found = select(Listing("t", entries), ids(7), base_formats={"base_7": BaseFormat.TRUNCATED})
    check(found, base="base_7", current=[], obsolete={"delta_6_6"})


def test_a_recompacted_range_is_read_once() -> None:
    """Section 6.3 note e: Hive itself would read both and return rows twice."""
    found = select(
        listing("delta_1_5", "delta_1_5_v100", "delete_delta_1_5", "delete_delta_1_5_v100"), ids(10), COMMITTED
    )
    check(
        found,
        base=None,
        current=["delete_delta_1_5_v100", "delta_1_5_v100"],
        obsolete={"delta_1_5", "delete_delta_1_5"},
    )
    reasons = {verdict.name: verdict.reason.by for verdict in found.in_state(State.OBSOLETE)}
    assert reasons == {"delta_1_5": ("delta_1_5_v100",), "delete_delta_1_5": ("delete_delta_1_5_v100",)}


def test_unparseable_directories_are_shown_and_skipped() -> None:
    found = select(listing("base_tmp", "delta_x", "delete_delta_1", "delta_1_1"))
    check(found, base=None, current=["delta_1_1"], ignored={"base_tmp", "delta_x", "delete_delta_1"})
    kinds = {verdict.name: verdict.kind.value for verdict in found.verdicts}
    assert kinds == {"base_tmp": "base", "delta_x": "delta", "delete_delta_1": "delete_delta", "delta_1_1": "delta"}


def test_an_invalid_compacted_base_beside_its_overwrite_is_not_obsolete() -> None:
    found = select(listing("base_25", "base_25_v26"), ids(25, (20,)), COMMITTED)
    check(found, base="base_25", current=[], ignored={"base_25_v26"})
