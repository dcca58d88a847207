"""When a location wants compaction: the initiator's thresholds and their order (format section 9)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from acidctl.acid.layout import data_bytes_of, files_by_child
from acidctl.acid.listing import Listing
from acidctl.acid.reasons import Code, Reason, reason
from acidctl.acid.state import AcidState, EntryKind, State
from acidctl.errors import UsageProblem


class CompactionKind(StrEnum):
    """The two types of compaction."""

    MAJOR = "major"
    MINOR = "minor"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Hive's settings with Hive's defaults; each comparison is strict (``>``).

    Attributes:
        delta_count: ``hive.compactor.delta.num.threshold``, directories.
        delta_ratio: ``hive.compactor.delta.pct.threshold``, bytes of deltas over bytes of the base.
        aborted_txns: ``hive.compactor.abortedtxn.threshold``.
    """

    delta_count: int = 10
    delta_ratio: float = 0.1
    aborted_txns: int = 1000

    def with_properties(self, properties: Mapping[str, str]) -> Thresholds:
        """The thresholds that table properties ``compactorthreshold.<key>`` override.

        Raises:
            UsageProblem: a value that is not a number.
        """
        keys = {
            "hive.compactor.delta.num.threshold": ("delta_count", int),
            "hive.compactor.delta.pct.threshold": ("delta_ratio", float),
            "hive.compactor.abortedtxn.threshold": ("aborted_txns", int),
        }
        result = self
        for key, text in properties.items():
            name, convert = keys.get(key.removeprefix("compactorthreshold."), ("", str))
            if not name:
                if key.startswith(("compactorthreshold.", "hive.compactor.")):
                    raise UsageProblem(f"no threshold is called {key}", f"known are {', '.join(keys)}")
                continue
            try:
                result = replace(result, **{name: convert(text)})
            except ValueError:
                raise UsageProblem(f"cannot use the property {key}={text}", "its value is not a number") from None
        return result


@dataclass(frozen=True, slots=True)
class Figures:
    """What the decision looks at.

    Attributes:
        base_bytes: data bytes of the current base, or of the original files when there is no base.
        delta_bytes: data bytes of all current deltas and delete deltas.
        deltas: number of current delta and delete delta directories.
        aborted_txns: aborted transactions known for the location.
        has_obsolete_base: an obsolete base is still there.
        minor_supported: False for insert-only tables of Hive 3 and where originals or raw deltas forbid it.
    """

    base_bytes: int
    delta_bytes: int
    deltas: int
    aborted_txns: int = 0
    has_obsolete_base: bool = False
    minor_supported: bool = True


def figures_of(listing: Listing, state: AcidState) -> Figures:
    """The figures of one location: data files only, hidden ones excluded."""
    children = files_by_child(listing)
    base_bytes = sum(entry.size for entry in state.originals)
    if state.base and state.base.directory:
        base_bytes = data_bytes_of(children.get(state.base.name, ()))
    delta_bytes = sum(data_bytes_of(children.get(delta.name, ())) for delta in state.deltas if delta.directory)
    obsolete_base = any(verdict.kind is EntryKind.BASE for verdict in state.in_state(State.OBSOLETE))
    return Figures(base_bytes, delta_bytes, len(state.deltas), has_obsolete_base=obsolete_base)


@dataclass(frozen=True, slots=True)
class Decision:
    """What the initiator would do.

    Attributes:
        kind: None for nothing.
        reason: the comparison that decided, with its figures.
    """

    kind: CompactionKind | None
    reason: Reason


NO_AUTO = ("no_auto_compaction", "NO_AUTO_COMPACTION")
"""Hive looks for it in lower and upper case."""


def is_auto_off(properties: Mapping[str, str]) -> bool:
    """Whether ``no_auto_compaction`` is set."""
    return any(properties.get(key, "").lower() == "true" for key in NO_AUTO)


def decide(figures: Figures, thresholds: Thresholds | None = None, *, hive4: bool = False) -> Decision:
    """The type of compaction a location wants, tested in Hive's order.

    Args:
        hive4: also ask for a major compaction when there are no deltas but an obsolete base, as Hive 4 does.
    """
    limits = thresholds or Thresholds()
    if figures.aborted_txns > limits.aborted_txns:
        why = reason(Code.MANY_ABORTED, count=figures.aborted_txns, limit=limits.aborted_txns)
        return Decision(CompactionKind.MAJOR, why)
    no_base = figures.base_bytes == 0
    ratio = None if no_base else figures.delta_bytes / figures.base_bytes
    if ratio is not None and ratio > limits.delta_ratio:
        return Decision(CompactionKind.MAJOR, reason(Code.MANY_DELTA_BYTES, ratio=ratio, most=limits.delta_ratio))
    if hive4 and not no_base and figures.delta_bytes == 0 and figures.has_obsolete_base:
        return Decision(CompactionKind.MAJOR, reason(Code.OBSOLETE_BASE_ALONE))
    if figures.deltas <= limits.delta_count:
        kind, code = None, Code.FEW_DELTAS
    elif no_base:
        kind, code = CompactionKind.MAJOR, Code.MANY_DELTAS_AND_NO_BASE
    elif not figures.minor_supported:
        kind, code = CompactionKind.MAJOR, Code.MANY_DELTAS_AND_NO_MINOR
    else:
        kind, code = CompactionKind.MINOR, Code.MANY_DELTAS
    why = reason(code, deltas=figures.deltas, limit=limits.delta_count, ratio=ratio, most=limits.delta_ratio)
    return Decision(kind, why)
