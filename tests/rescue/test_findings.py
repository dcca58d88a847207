"""Each disagreement is told apart from what only looks like it, by names and answers alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from acidctl.acid.names import MINL, acid_directory
from acidctl.acid.reasons import Code, Reason
from acidctl.acid.writeids import ValidTxns, ValidWriteIds
from acidctl.rescue.findings import Answers, Disagreement, Folder, Look

DAY = 86400.0


def folder(*names: str, name: str = "", **more: object) -> Folder:
    directories = tuple(d for text in names if (d := acid_directory(text)))
    return Folder(name, directories, **more)  # type: ignore[arg-type]


def above(given: int, *names: str, what: str = "write id") -> Reason:
    return Reason(Code.ABOVE_GIVEN, names, (), (("what", what), ("given", given), ("is_replica", False)))


def delta(*ids: int) -> list[str]:
    return [f"delta_{one:07}_{one:07}_0000" for one in ids]


def answers(given: int = 9, sequence: int = 30, **more: object) -> Answers:
    ids = ValidWriteIds(given, table="d.t")
    return replace(Answers(given, sequence, ids, ValidTxns(sequence)), **more)  # type: ignore[arg-type]


def kinds(folders: Sequence[Folder], said: Answers) -> list[str]:
    return [finding.kind.value for finding in Look(tuple(folders), said).findings]


def aborted(*txns: int) -> ValidTxns:
    return ValidTxns(30, aborted=txns)


def opened(*txns: int) -> ValidTxns:
    return ValidTxns(30, min(txns), txns)


FOUND = {
    "older-metastore": ([folder(*delta(1, 2, 3), ahead=(above(2, *delta(3)),))], answers(2)),
    "recreated-table": ([folder(*delta(1, 2), ahead=(above(0, *delta(1, 2)),))], answers(0)),
    "other-cluster": (
        [
            folder(
                "base_0000003_v0000090",
                ahead=(
                    above(0, "base_0000003_v0000090"),
                    above(30, "base_0000003_v0000090", what="transaction"),
                ),
            )
        ],
        answers(0),
    ),
    "future-transaction": (
        [folder("base_0000003_v0000090", ahead=(above(30, "base_0000003_v0000090", what="transaction"),))],
        answers(),
    ),
    "aborted-transaction": ([folder("base_0000003_v0000018", *delta(4))], answers(txns=aborted(18))),
    "open-transaction": ([folder("base_0000003_v0000018")], answers(txns=opened(18))),
    "lost-partition": ([folder(*delta(1), name="ds=1", known=False)], answers()),
    "no-folder": ([folder(*delta(1), name="ds=1")], answers(missing=("ds=2",))),
    "used-twice": (
        [folder(*delta(3, 5), times={delta(3)[0]: 20 * DAY, delta(5)[0]: 10 * DAY})],
        answers(),
    ),
    "older-files": ([folder("base_0000005", *delta(6, 7, 9))], answers(succeeded={"": 8})),
    "missing-base": ([folder(*delta(6, 7))], answers(succeeded={"": 5})),
}


@pytest.mark.parametrize("kind", FOUND)
def test_a_disagreement_is_named(kind: str) -> None:
    folders, said = FOUND[kind]
    found = Look(tuple(folders), said).findings
    assert kind in [finding.kind.value for finding in found]
    assert set(kinds(folders, said)) <= {kind, *({"future-transaction"} if kind == "other-cluster" else ())}
    assert all(finding.advice and finding.directories for finding in found)


def test_every_kind_is_found_here_but_the_one_that_only_a_human_knows() -> None:
    assert set(FOUND) == {kind.value for kind in Disagreement} - {"forgotten-abort"}


def test_an_interrupted_rescue_is_named_though_every_id_was_given() -> None:
    said = answers(7, unfinished=(31, 32), write_ids=ValidWriteIds(6, 6, (6,), table="d.t"))
    (finding,) = Look((folder(*delta(5, 6, 7)),), said).findings
    assert (finding.kind, finding.directories) == (Disagreement.OLDER_METASTORE, (*delta(6, 7),))


def test_what_only_one_of_two_looks_shows_is_not_found() -> None:
    folders, said = FOUND["older-metastore"]
    first = Look(tuple(folders), said)
    assert Look(tuple(folders), said, before=first).findings == first.findings
    assert Look(tuple(folders), said, before=Look((), said)).findings == ()


SILENT = {
    "a writer at work": ([folder(*delta(1, 2))], answers(2, write_ids=ValidWriteIds(2, 2, (2,), table="d.t"))),
    "a writer that died": ([folder(*delta(1))], answers(1, write_ids=ValidWriteIds(1, aborted=(1,), table="d.t"))),
    "ids that were never used": ([folder(*delta(2, 7))], answers(9)),
    "a high watermark below the highest id": ([folder(*delta(5, 7))], answers(7, write_ids=ValidWriteIds(4))),
    "a jump of the transactions": ([folder("base_0000002_v0000120")], answers(sequence=130)),
    "a compaction at work": ([folder(*delta(1, 2), "delta_0000001_0000002_v0000018")], answers(txns=opened(18))),
    "a compaction at work whose inputs were not listed": (
        [folder("base_0000002_v0000018")],
        answers(txns=opened(18), compacting=frozenset({18})),
    ),
    "a failed compaction": ([folder(*delta(1, 2, 3), "base_0000003_v0000018")], answers(txns=aborted(18))),
    "a failed compaction of originals": (
        [folder(f"base_{MINL}_v0000018", f"base_{MINL}", has_originals=True)],
        answers(txns=aborted(18)),
    ),
    "a failed compaction below a newer base": (
        [folder("base_0000003_v0000018", "base_0000009_v0000020")],
        answers(txns=aborted(18)),
    ),
    "dynamic partitions at work": (
        [folder(*delta(9), name="ds=1", known=False)],
        answers(9, write_ids=ValidWriteIds(9, 9, (9,), table="d.t")),
    ),
    "the empty base of a dropped partition": (
        [folder(*delta(1), "base_0000002", name="ds=1", known=False, has_rows=False)],
        answers(),
    ),
    "originals": ([folder(has_originals=True)], answers(0)),
    "a converted table": ([folder(*delta(10_000_001), has_originals=True)], answers(10_000_001)),
    "a converted table after a compaction": (
        [folder(*delta(10_000_001))],
        answers(10_000_001, succeeded={"": 10_000_000}),
    ),
    "a compaction with nothing to merge": ([folder(*delta(3))], answers(3, succeeded={"": 3})),
    "a compaction below what came later": ([folder("base_0000005", *delta(6, 7))], answers(succeeded={"": 5})),
    "a compaction over empty ids": ([folder("base_0000005")], answers(succeeded={"": 8})),
    "an aborted delta below a compaction": (
        [folder("base_0000005", *delta(6))],
        answers(succeeded={"": 8}, write_ids=ValidWriteIds(9, aborted=(6,), table="d.t")),
    ),
    "deltas of one day": ([folder(*delta(3, 5), times={delta(3)[0]: DAY + 9, delta(5)[0]: 10.0})], answers()),
    "a compacted delta beside its inputs": (
        [folder(*delta(1, 2), "delta_0000001_0000002_v0000018", times={delta(2)[0]: 5 * DAY})],
        answers(),
    ),
    "an empty table": ([folder()], answers(0)),
}  # fmt: skip


@pytest.mark.parametrize("alike", SILENT)
def test_what_looks_alike_is_silent(alike: str) -> None:
    assert kinds(*SILENT[alike]) == []
