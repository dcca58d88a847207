"""Warnings about layouts that Hive never writes but reads silently, and about ids that Hive never assigned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from acidctl.acid.compaction_kind import Hive
from acidctl.acid.layout import passed_over, union_folders
from acidctl.acid.reasons import Code, reason
from acidctl.acid.unfinished import LayoutProblem, layout_problems
from acidctl.location.snapshot import Snapshot
from acidctl.wording import text_of

if TYPE_CHECKING:
    from acidctl.rows.read.events import EventFile


def odd_layout(snapshot: Snapshot, problems: Sequence[LayoutProblem] | None = None) -> list[str]:
    """Return a sentence for each oddity, with its effect on the rows.

    Args:
        problems: those of the layout, if the caller has them already.
    """
    if problems is None:
        problems = layout_problems(snapshot.listing, snapshot.state)
    read = {file.path for file in snapshot.files()} if problems else set()
    shown = snapshot.shown
    sentences = [f"{shown}: {text_of(why)}; stop all writers of the table first" for why in snapshot.ahead]
    for problem in problems:
        effect = "it is read" if problem.path in read else "it is not read"
        if problem.reason.code is Code.DELETES_ARE_ROWS:
            effect = "acidctl does, too"
        elif problem.reason.code is Code.ORIGINAL_WITHOUT_BUCKET:
            effect = "acidctl also reads it"
        elif problem.reason.code is Code.UNPADDED_DELETES:
            effect = "acidctl applies them"
        elif problem.reason.code is Code.DEEP_DIRECTORY:
            effect = "acidctl does not read it"
        elif problem.reason.code is Code.PARTITION_BESIDE:
            effect = "acidctl reads it as a partition"
        elif problem.reason.value("how") == "wide":
            effect = "acidctl reads it"
        elif problem.rule == "V25":
            effect = "acidctl reads both"
        elif problem.rule == "V10":
            effect = f"{problem.others[0]} is read here"
        elif problem.others:
            effect = "both are read, as Hive does, so rows may come twice"
        sentences.append(f"{shown}: {text_of(problem.reason)}: {effect}")
    is_of_hive4 = snapshot.declared is not None and snapshot.declared.hive is Hive.HIVE4
    unread = () if is_of_hive4 else union_folders(snapshot.listing, snapshot.state)
    for skipped in (*passed_over(snapshot.listing, snapshot.state), *unread):
        path = "" if skipped.path in text_of(skipped.reason) else f"{skipped.path}: "
        sentences.append(f"{shown}: {path}{text_of(skipped.reason)}{': it is not read' if skipped.is_certain else ''}")
    return sentences


def misplaced_deletes(snapshot: Snapshot, sources: Iterable[EventFile]) -> Iterator[str]:
    """Yield a sentence for each file of deletes whose footer shows events of another bucket than its name's."""
    from acidctl.rows.read.bucket_numbers import is_misplaced  # noqa: PLC0415 - with Arrow: not for what only lists

    for source in sources:
        if source.is_delete and is_misplaced(source.file, source.tail):
            why = reason(Code.MISPLACED_DELETES, path=source.file.path)
            yield f"{snapshot.shown}: {text_of(why)}: acidctl applies them"
