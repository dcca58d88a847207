"""The options of compactions: their type, where they run, and how results are written."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from acidctl.base.errors import UsageProblem
from acidctl.verbs.engine import TaskOptions
from acidctl.verbs.options import Kind, LockOptions, Options, group, option

if TYPE_CHECKING:
    from acidctl.acid.listing import TableType
    from acidctl.acid.triggers import Thresholds
    from acidctl.compaction.output_settings import Writing
    from acidctl.compaction.request import CompactionRequest, Mode
    from acidctl.verbs.events import Events

_MODES = ("major", "minor", "rebalance", "auto")
_DECIDING = ("compactorthreshold.", "hive.compactor.")


@dataclass(frozen=True, kw_only=True)
class WriteOptions(Options):
    """The options by which results are written and proven."""

    reader: str | None = option(
        None,
        "--for",
        choices=("hive2", "hive3", "hive4"),
        help="The version of Hive that reads the tables, if no metastore is used. By default whatever Hive 3 and 4 "
        "read differently is refused, and so are updates of ACID version 1, which only Hive 2 reads.",
    )
    verify: str = option(
        "bytes",
        "--verify",
        choices=("keys", "bytes", "full", "inputs"),
        help="How a result is checked before it is published. keys: the ids of all rows; bytes: also all bytes, which "
        "reads the result again; full: also all column values, which decodes everything twice; inputs: also the inputs "
        "first, like `acidctl validate --deep`; a location with errors is not compacted.",
    )
    properties: tuple[tuple[str, str], ...] = option(
        (),
        "--property",
        kind=Kind.PAIRS,
        help="A table property as in Hive's ALTER TABLE ... COMPACT. For the files that are written: orc.compress, "
        "orc.stripe.size, orc.row.index.stride, orc.bloom.filter.columns (default: those of the newest input; any of "
        "these re-encodes every row). For the decision of --auto: compactorthreshold.<key>. Repeatable.",
    )

    @property
    def checks_inputs(self) -> bool:
        """Return whether all rows are validated before they are merged."""
        return self.verify == "inputs"

    def writing(self, *, apply_all_deletes: bool = False) -> Writing:
        """Return how the results are written.

        Raises:
            UsageProblem: files cannot be written so.
        """
        from acidctl.acid.compaction_kind import Hive
        from acidctl.compaction.output_settings import Writing
        from acidctl.compaction.proof.checksum import Verify
        from acidctl.orc.write.writer_settings import WriterSettings

        overrides = WriterSettings.parse(self.properties)
        WriterSettings(**overrides)  # refuses what cannot be written before anything is planned
        return Writing(
            overrides,
            verify=Verify.FULL if self.checks_inputs else Verify(self.verify),
            reader=Hive(self.reader) if self.reader else None,
            apply_all_deletes=apply_all_deletes,
        )


@dataclass(frozen=True, kw_only=True)
class ModeOptions(Options):
    """The options that choose the type of compaction."""

    major: bool = option(False, "--major", typed=True, help="Merge base and deltas into a new base, deletes applied.")
    minor: bool = option(False, "--minor", typed=True, help="Merge deltas into one delta and one delete delta.")
    rebalance: bool = option(
        False,
        "--rebalance",
        typed=True,
        help="All rows into a new base, spread evenly over buckets, with new ids (Hive 4).",
    )
    auto: bool = option(False, "--auto", typed=True, help="What Hive's thresholds ask for, location by location.")
    buckets: int | None = option(
        None,
        "--buckets",
        kind=Kind.NUMBER,
        least=1,
        most=4096,
        help="With --rebalance: how many; by default as many as there are.",
    )

    @property
    def mode(self) -> Mode:
        """Return the chosen type of compaction.

        Raises:
            UsageProblem: none is chosen, or several are.
        """
        from acidctl.compaction.request import Mode

        modes = [mode for mode in _MODES if getattr(self, mode)]
        if len(modes) != 1:
            what = "no compaction is chosen" if not modes else f"{' and '.join(modes)} exclude each other"
            raise UsageProblem(what, "", "give one of --major, --minor, --rebalance and --auto")
        return Mode(modes[0])


@dataclass(frozen=True, kw_only=True)
class RunOptions(Options):
    """The options of a compaction that a nightly run has, too."""

    dry_run: bool = option(False, "-n", "--dry-run", help="Show the plan and stop.")
    min_deltas: int | None = option(
        None,
        "--min-deltas",
        kind=Kind.COUNT,
        help="Skip locations with fewer deltas; if thresholds decide, compact from this many on (Hive: more than 10).",
    )
    deadline: float | None = option(None, "--deadline", kind=Kind.DURATION, help="End after this long, e.g. 2h or 30m.")
    max_bytes: int | None = option(
        None,
        "--max-bytes",
        kind=Kind.SIZE,
        help="Read at most this much for compactions: those whose readers gain most first.",
    )
    offline: bool = option(
        False,
        "--offline",
        typed=True,
        help="Nothing reads the tables meanwhile: lets a minor compaction rename twice, and an object store show "
        "several buckets.",
    )
    tasks: TaskOptions = group(TaskOptions)
    writing: WriteOptions = group(WriteOptions)
    locks: LockOptions = group(LockOptions)


@dataclass(frozen=True, kw_only=True)
class CompactOptions(RunOptions, ModeOptions):
    """The options of `acidctl compact`."""

    visibility_txn: int | None = option(
        None,
        "--visibility-txn",
        kind=Kind.NUMBER,
        metavar="TXN",
        least=1,
        typed=True,
        help="Name the results _v<TXN>, the compaction's own transaction (Hive 4): visible when it is committed.",
    )
    force: bool = option(False, "--force", typed=True, help="Go on although a writer seems to be at work.")
    apply_all_deletes: bool = option(
        False,
        "--apply-all-deletes",
        typed=True,
        help="A major compaction applies deletes that Hive overlooks, too: in files of other buckets, or not sorted.",
    )
    take_over: bool = option(
        False, "--take-over", typed=True, help="Replace a compaction of this location that waits in Hive's queue."
    )
    wait: float | None = option(
        None,
        "--wait",
        kind=Kind.DURATION,
        help="Wait this long for Hive's own compaction of the same location, and for the lock of --rebalance, e.g. 2h.",
    )

    @property
    def _deciding(self) -> dict[str, str]:
        """Return the properties by which --auto decides.

        Raises:
            UsageProblem: a property decides nothing, or nothing is to be decided.
        """
        from acidctl.acid.triggers import NO_AUTO

        deciding = {key: value for key, value in self.writing.properties if not key.startswith("orc.")}
        for key in deciding:
            if not (key in NO_AUTO or key.startswith(_DECIDING)):
                hint = f"use orc.*, compactorthreshold.<key> or {NO_AUTO[0]}"
                raise UsageProblem(f"--property {key} decides nothing", "", hint)
            if not self.auto:
                raise UsageProblem(f"--property {key} has no effect with --{self.mode}", "--auto decides by it", "")
        return deciding

    @property
    def thresholds(self) -> Thresholds:
        """Return the thresholds by which --auto decides.

        Raises:
            UsageProblem: a property decides nothing.
        """
        from acidctl.acid.triggers import Thresholds

        limits = Thresholds().with_properties(self._deciding)
        if self.min_deltas is not None:
            limits = replace(limits, delta_count=self.min_deltas - 1)
        return limits

    def request(
        self, events: Events, table_type: TableType | None = None, age: float = 0.0, run_id: str = ""
    ) -> CompactionRequest:
        """Return the request for every location.

        Args:
            table_type: the type that the user gave for the table.
            age: seconds above which directories count as committed; 0 if no age decides.
        """
        from acidctl.acid.triggers import is_auto_off
        from acidctl.compaction.request import CompactionRequest

        return CompactionRequest(
            self.mode,
            self.thresholds,
            self.min_deltas or 0,
            self.visibility_txn or 0,
            table_type,
            self.force,
            self.offline,
            self.dry_run,
            auto_off_by="user" if is_auto_off(self._deciding) else "",
            take_over=self.take_over,
            wait=self.wait or 0.0,
            writing=self.writing.writing(apply_all_deletes=self.apply_all_deletes),
            locking=self.locks.locking(events.warn, age),
            buckets=self.buckets or 0,
            night=run_id,
        )
