"""Compactions in words: what is planned, and what became of it."""

from __future__ import annotations

from acidctl.compaction.request import Planned
from acidctl.compaction.run import Compacted
from acidctl.outcome import Outcome
from acidctl.wording import human_bytes, human_count


def compaction_text(outcome: Outcome) -> str:
    """One line; empty for what is neither."""
    if isinstance(outcome, Planned):
        return _planned(outcome)
    return _compacted(outcome) if isinstance(outcome, Compacted) and outcome.is_changed else ""


def compaction_kind(outcome: Outcome) -> str:
    """What is true of many such outcomes; empty for what is neither."""
    if isinstance(outcome, Planned):
        return f"to compact, {outcome.plan.asked}"
    return "compacted" if isinstance(outcome, Compacted) and outcome.is_changed else ""


def compaction_counts(outcome: Outcome) -> dict[str, int]:
    """Inputs and bytes of what would be compacted, or was."""
    if not isinstance(outcome, Planned | Compacted):
        return {}
    plan = outcome.plan
    written = {"written": outcome.bytes} if isinstance(outcome, Compacted) else {}
    return {"inputs": len(plan.inputs), **written, "read": plan.input_bytes}


def _planned(outcome: Planned) -> str:
    plan = outcome.plan
    because = f" ({outcome.reason})" if outcome.is_decided else ""
    most = "" if plan.cut_buckets else "at most "
    cut = f" in {most}{human_count(outcome.segments, 'segment')}" if outcome.segments else ""
    return (
        f"{outcome.location}: {plan.asked}{because}: {human_count(len(plan.inputs), 'input')}, "
        f"{human_count(outcome.buckets, 'bucket')}{cut}, "
        f"{human_count(plan.rows, 'row')} and {human_count(plan.delete_events, 'delete event')}, "
        f"{human_bytes(plan.input_bytes)} -> {' + '.join(plan.output_names)}"
    )


def _compacted(outcome: Compacted) -> str:
    plan = outcome.plan
    return (
        f"{outcome.location}: {plan.asked}: {human_count(len(plan.inputs), 'input')} -> "
        f"{' + '.join(outcome.published)}, {human_bytes(plan.input_bytes)} -> {human_bytes(outcome.bytes)}, "
        f"{human_count(outcome.rows, 'row')}, {outcome.rows_dropped:,} dropped, "
        f"{human_count(outcome.stripes[0], 'stripe')} copied, {outcome.stripes[1]:,} encoded, "
        f"{plan.verify.told}, {outcome.seconds:.1f} s of work"
    )
