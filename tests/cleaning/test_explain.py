"""Proofs of verdicts: of every published case, of every entry, and with the ids and names that decide."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.paths import DATA
from support.tables import whole

from acidctl.acid.listing import Entry, Listing
from acidctl.acid.names import MAXL
from acidctl.acid.reasons import Code, reason
from acidctl.acid.sidefiles import BaseFormat
from acidctl.acid.state import EntryKind, State, select
from acidctl.acid.writeids import IdRun, IdStatus, ValidTxns, ValidWriteIds, txn_status, write_id_runs
from acidctl.cleaning.explain import CleaningAnswer, MayClean, ProofInputs, VerdictProof, explain_history, prove_all
from acidctl.cleaning.leftovers import Action, Advice, hidden_kind, is_leftover
from acidctl.wording import spans, status_text, text_of

CASES = {case["id"]: case for case in json.loads((DATA / "acid-state-cases.json").read_text())}


def evidence(
    names: tuple[str, ...] | Listing,
    write_ids: str | ValidWriteIds = "",
    txns: str | None = None,
    formats: dict[str, BaseFormat] | None = None,
    cleaning: CleaningAnswer | None = None,
) -> ProofInputs:
    """The evidence of a listing; without an answer cleaning may take all that is obsolete or aborted."""
    listing = names
    if not isinstance(listing, Listing):
        entries = [Entry(n, 0, 1.0, True) for n in names] + [Entry(f"{n}/bucket_00000", 9, 1.0, False) for n in names]
        listing = Listing("t", tuple(entries))
    ids = write_ids
    if isinstance(ids, str):
        ids = ValidWriteIds.parse(whole(ids)) if ids else ValidWriteIds()
    known = ValidTxns.parse(txns) if txns else None if txns is None else ValidTxns()
    state = select(listing, ids, known, formats)
    gone = frozenset(v.name for v in state.verdicts if v.state in (State.OBSOLETE, State.ABORTED))
    return ProofInputs(listing, state, ids, known, cleaning or CleaningAnswer(gone))


def proofs(found: ProofInputs) -> dict[str, VerdictProof]:
    return {proof.name: proof for proof in prove_all(found)}


def all_of(proof: VerdictProof) -> str:
    return " | ".join((*(step.text for step in proof.steps), text_of(proof.cleaning), *map(str, proof.next)))


def following(proof: VerdictProof) -> str:
    return "; ".join(map(str, proof.next))


def check(found: ProofInputs) -> None:
    """What holds of the proofs of any location."""
    made = prove_all(found)
    assert [proof.verdict for proof in made] == list(found.state.verdicts)
    by_name = {verdict.name: verdict for verdict in found.state.verdicts}
    ids = found.write_ids
    for proof in made:
        text, directory = all_of(proof), by_name[proof.name].directory
        assert all(step.text and not step.text.endswith(".") for step in proof.steps)
        assert "{" not in text
        for name in proof.verdict.reason.by:
            assert by_name[name].state is State.CURRENT
            assert name in text
        if proof.verdict.state in (State.OBSOLETE, State.ABORTED):
            assert (proof.may_clean is MayClean.NO) == bool(found.state.history_problem)
        else:
            assert proof.may_clean is MayClean.NO
        if directory and 0 < directory.min_write_id <= directory.max_write_id:
            assert proof.write_ids[-1].last == directory.max_write_id
            last = proof.write_ids[0].first - 1
            for run in proof.write_ids:
                assert last + 1 == run.first <= run.last
                assert ids.is_valid(run.first) == ids.is_valid(run.last) == (run.status is IdStatus.COMMITTED)
                last = run.last
        if proof.verdict.reason.code in (
            "write-id-open",
            "write-id-aborted",
            "above-high-watermark",
            "open-below-base",
        ):
            blocked = [run for run in proof.write_ids if run.status is not IdStatus.COMMITTED]
            assert blocked
            assert spans(blocked[:1]) in text
        if directory and directory.visibility_txn:
            assert f"transaction {directory.visibility_txn}" in text
            assert proof.txn == (directory.visibility_txn, txn_status(found.txns, directory.visibility_txn))
        if proof.verdict.state is State.IGNORED and proof.verdict.reason.code != "hidden":
            assert proof.next
    history = explain_history(found)
    assert bool(history) == bool(found.state.history_problem)
    for verdict in found.state.verdicts:
        if history and verdict.kind is EntryKind.BASE:
            assert any(verdict.name in step.names for step in history)


@pytest.mark.parametrize("case_id", CASES)
def test_every_entry_of_every_published_case(case_id: str) -> None:
    case = CASES[case_id]
    listing = Listing("t", tuple(Entry(i["path"], i["size"], None, i["dir"]) for i in case["listing"]))
    check(evidence(listing, case["valid_write_ids"] or "", case["valid_txns"]))


def test_every_entry_of_every_cleaner_case() -> None:
    for case in json.loads((DATA / "cleaner-cases.json").read_text()):
        if case.get("table_properties"):
            continue  # no_cleanup is not on disk
        aborted = tuple(case.get("aborted_write_ids", ()))
        cleaner = ValidWriteIds(MAXL, aborted=aborted).for_cleaner(case["compaction_highest_write_id"])
        found = evidence(tuple(case["dirs_before"]), cleaner, "")
        check(found)
        taken = {name for name, proof in proofs(found).items() if proof.may_clean is MayClean.YES}
        assert taken == set(case["removed"])


ids = st.integers(0, 12)
names = st.one_of(
    st.builds("base_{}".format, ids),
    st.builds("base_{}_v{}".format, ids, ids),
    st.builds("delta_{}_{}".format, ids, ids),
    st.builds("delete_delta_{}_{}".format, ids, ids),
    st.builds("delta_{0}_{0}_{1}".format, ids, st.integers(0, 2)),
    st.builds("delta_{}_{}_v{}".format, ids, ids, ids),
    st.sampled_from(["000000_0", "_tmp_1", "_tmp.delta_3_3", ".hive-staging_1", "delta_x", "day=1", "_SUCCESS"]),
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(names, unique=True, max_size=9).map(tuple),
    st.integers(0, 13),
    st.sets(st.integers(1, 12)),
    st.sets(st.integers(1, 12)),
    st.sets(st.integers(1, 12)),
    st.booleans(),
)
def test_every_entry_of_any_location_has_a_proof(
    listed: tuple[str, ...], hwm: int, opened: set[int], aborted: set[int], txns: set[int], known: bool
) -> None:
    def join(numbers: set[int]) -> str:
        return ",".join(map(str, sorted(numbers)))

    opened, aborted = {i for i in opened if i <= hwm}, {i for i in aborted - opened if i <= hwm}
    lists = f"t:{hwm}:{min(opened, default=MAXL)}:{join(opened)}:{join(aborted)}"
    transactions = f"11:{min(txns, default=MAXL)}:{join(txns)}:" if known else None
    formats = {name: BaseFormat.COMPACTED for name in listed if name.startswith("base_") and len(name) % 2}
    check(evidence(listed, lists, transactions, formats))


def test_proof_of_a_base_says_why_no_other_is_read() -> None:
    listed = ("base_5_v20", "base_7", "base_10", "base_10_v50", "base_12_v60", "base_15_v70", "delta_11_11")
    steps = {
        name: next(step for step in proof.steps if step.topic == "verdict")
        for name, proof in proofs(evidence(listed, f"t:14:{MAXL}::", "65:60:60:")).items()
    }
    assert steps["base_10_v50"].text == "the newest of 4 usable bases"
    assert steps["base_5_v20"].text == "readers use base_10_v50"
    assert steps["base_10"].text == "readers use base_10_v50"
    assert steps["base_12_v60"].text == "transaction 60 is open"
    assert steps["base_12_v60"].ids == (60,)
    assert steps["base_15_v70"].text == "transaction 70 is above the transactions this snapshot knows"
    tie = proofs(evidence(("base_10_v50", "base_10_v60")))["base_10_v50"]
    assert "readers use base_10_v60" in all_of(tie)


def test_not_enough_history_names_the_ids() -> None:
    found = evidence(("base_5_v10", "base_9_v20", "delta_10_10"), "t:12:2:2,4,8:7", "99:9223372036854775807::")
    text = " | ".join(f"{', '.join(step.names)}: {step.text}" for step in explain_history(found))
    assert "high watermark 12, open: 2, 4 and 8, aborted: 7" in text
    assert "base_5_v10: write ids 2 and 4 are open" in text
    assert "base_9_v20: write ids 2, 4 and 8 are open" in text
    assert (
        "base_5_v10 can be read by a snapshot with a high watermark of 5 or more, and no open write id up to 5" in text
    )
    refused = proofs(
        replace(
            found,
            cleaning=CleaningAnswer(
                refusal=reason(Code.REFUSED, how="error", why="not enough history"), hint="use a newer snapshot"
            ),
        )
    )
    assert all(proof.may_clean is MayClean.NO for proof in refused.values())
    assert following(refused["base_5_v10"]) == "write ids 2 and 4 must be committed or aborted"
    above = evidence(("base_9_v20",), f"t:7:{MAXL}::")
    assert "9 is above the high watermark 7" in " ".join(step.text for step in explain_history(above))


def test_what_must_happen_before_cleaning() -> None:
    listed = ("delta_1_3", "delta_4_6", "delta_7_7", "delta_8_8", "delta_9_20")
    made = proofs(evidence(listed, "t:10:5:5,8:2,7"))
    assert following(made["delta_1_3"]) == "a major compaction first: write id 2 is aborted inside"
    assert following(made["delta_4_6"]) == "write id 5 must be committed or aborted, then a compaction"
    assert (made["delta_7_7"].may_clean, following(made["delta_7_7"])) == (
        MayClean.YES,
        "`acidctl clean` takes it at any time",
    )
    assert following(made["delta_8_8"]) == "write id 8 must be committed or aborted"
    assert made["delta_9_20"].write_ids == (IdRun(9, 10, IdStatus.COMMITTED), IdRun(11, 20, IdStatus.ABOVE))


def test_what_is_kept_back_says_by_which_doubt() -> None:
    listed = ("base_3_v26", "delta_1_1", "_tmp.delta_4_4", "delta_4_4")
    unknown = reason(Code.TRANSACTION_UNKNOWN, by=("base_3_v26",), ids=(26,), how="transaction")
    doubts = reason(Code.ONLY_BY_DOUBT, unknown, reason(Code.WRITER_AT_WORK, by=("delta_4_4",), how="manifest-beside"))
    found = evidence(listed, cleaning=CleaningAnswer(kept_back={"delta_1_1": doubts}))
    proof = proofs(found)["delta_1_1"]
    assert proof.may_clean is MayClean.KEPT_BACK
    assert text_of(proof.cleaning) == "base_3_v26: whether transaction 26 is committed is not known"
    assert [one.action for one in proof.next] == [Action.GIVE_LISTS]
    assert following(proof) == (
        "give --snapshot with Hive's transactions, or --assume-committed when no compaction is at work"
    )
    refusal = reason(Code.REFUSED, how="error", why="a compaction was interrupted")
    unfinished = proofs(replace(found, cleaning=CleaningAnswer(refusal=refusal, hint="compact")))["delta_1_1"]
    assert (unfinished.cleaning, unfinished.next) == (refusal, (Advice(Action.FOLLOW_HINT, "compact"),))


@pytest.mark.parametrize(
    "code",
    [
        Code.UNMARKED_BASE, Code.HALF_A_MINOR, Code.STRANGE_PATH, Code.ONLY_BY_DOUBT, Code.READER_HOLDS,
        Code.ABOVE_CLEANER,
    ],
)  # fmt: skip
def test_what_is_kept_back_is_told_what_to_do(code: Code) -> None:
    why = reason(code, by=("base_3_v26",), ids=(26,), path="x", high_watermark=3)
    proof = proofs(evidence(("base_3", "delta_1_1"), cleaning=CleaningAnswer(kept_back={"delta_1_1": why})))[
        "delta_1_1"
    ]
    assert (proof.may_clean, proof.cleaning) == (MayClean.KEPT_BACK, why)
    assert following(proof)


def test_leftovers_say_what_to_do_with_them() -> None:
    listed = ("_tmp_7", "_tmp.delta_4_4", ".hive-staging_3", ".acidctl-trash", "_tmpx")
    made = proofs(evidence(listed, cleaning=CleaningAnswer(unfinished=frozenset())))
    assert "`acidctl compact`" in following(made["_tmp_7"])
    assert "1 file, 9 bytes, last changed 1970-01-01 00:00:01 UTC" in all_of(made["_tmp_7"])
    assert "the manifest of a direct insert" in all_of(made["_tmp.delta_4_4"])
    assert "by hand" in following(made[".hive-staging_3"])
    assert "`acidctl purge`" in following(made[".acidctl-trash"])
    half = evidence(listed, cleaning=CleaningAnswer(unfinished=frozenset({"_tmp_7"})))
    assert "finishes the publication" in following(proofs(half)["_tmp_7"])


def test_a_range_is_never_walked() -> None:
    made = proofs(evidence((f"delta_1_{MAXL}", f"base_{MAXL}", "base_-9223372036854775808"), "t:10:4:4,5:7"))
    assert [f"{spans([run])} {status_text(run.status)}" for run in made[f"delta_1_{MAXL}"].write_ids] == [
        "1 to 3 committed", "4 and 5 open", "6 committed", "7 aborted", "8 to 10 committed",
        f"11 to {MAXL} above the high watermark",
    ]  # fmt: skip
    assert made["base_-9223372036854775808"].write_ids == ()


def test_write_ids_of_one_status_are_joined_into_runs() -> None:
    everything = write_id_runs(ValidWriteIds(), 3, 9)
    assert everything == (IdRun(3, 9, IdStatus.COMMITTED),)
    assert write_id_runs(ValidWriteIds.parse("t:2:2:2:"), 5, 6) == (IdRun(5, 6, IdStatus.ABOVE),)
    many = tuple(IdRun(i, i, IdStatus.OPEN) for i in range(1, 40, 2))
    assert spans(many).endswith("23 and 8 more")
    assert spans(()) == ""


def test_every_hidden_kind_has_what_clears_it() -> None:
    own = (".acidctl-trash", ".acidctl-backup", ".acidctl-lock", ".acidctl-lock-1")
    hidden = (*own, ".hive-staging_3", "_tmp.delta_4_4", "_tmp_7", "_tmpx")
    assert len({hidden_kind(name).what for name in hidden}) == 8
    assert len({hidden_kind(name).clears for name in hidden}) == 7, "one command purges the trash and the backups"
    assert all(bool(hidden_kind(name).abandoned) == is_leftover(name) for name in hidden)
