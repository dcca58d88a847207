"""The options of compactions: which one, when, where it runs, and how results are written."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from acidctl.base.errors import UsageProblem
from acidctl.verbs.engine import TaskOptions
from acidctl.verbs.options import Kind, LockOptions, Options, group, option

if TYPE_CHECKING:
    from acidctl.acid.triggers import Thresholds
    from acidctl.base.deadline import DailyWindow
    from acidctl.compaction.output_settings import Writing
    from acidctl.compaction.request import CompactionRequest, Mode
    from acidctl.verbs.events import Events
    from acidctl.verbs.selection import Selection

_MODES = ("major", "minor", "rebalance", "auto")
_DECIDING = ("compactorthreshold.", "hive.compactor.")


@dataclass(frozen=True, kw_only=True)
class WriteOptions(Options):
    """How results are written and proven."""

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
        choices=("keys", "bytes", "full"),
        shown="bytes",
        help="What is compared with what was read before a result is shown: the ids of all rows; all bytes too, which "
        "reads the result once more; or all column values too, which decodes all of it twice.",
    )
    check_inputs: bool = option(
        False,
        "--check-inputs",
        help="First read all rows as `acidctl validate --deep` does; a location with errors is left alone.",
    )
    compression: str | None = option(
        None,
        "--compression",
        choices=("none", "zlib", "snappy", "lz4", "zstd"),
        help="Codec of the result; by default that of the newest input. Any of these settings, given, has "
        "every row encoded again.",
    )
    stripe_size: int | None = option(None, "--stripe-size", kind=Kind.SIZE, help="By default 64m, and 8m for deltas.")
    row_index_stride: int | None = option(
        None,
        "--row-index-stride",
        kind=Kind.NUMBER,
        metavar="ROWS",
        help="By default that of the newest input.",
    )
    bloom_filter: str | None = option(
        None,
        "--bloom-filter",
        metavar="COLUMNS",
        completes="columns",
        help="Columns that get bloom filters, by commas.",
    )

    def writing(self, task_bytes: int | None, *, apply_all_deletes: bool = False) -> Writing:
        """Return how the results are written.

        Raises:
            UsageProblem: files cannot be written so.
        """
        from acidctl.acid.compaction_kind import Hive
        from acidctl.compaction.output_settings import Writing
        from acidctl.compaction.proof.verify import Verify
        from acidctl.orc.write.writer_settings import WriterSettings

        bloom = tuple(column.strip() for column in (self.bloom_filter or "").split(",") if column.strip())
        if self.bloom_filter is not None and not bloom:
            raise UsageProblem("--bloom-filter names no column", "", "give names of columns, separated by commas")
        given = {
            "compression": self.compression,
            "stripe_size": self.stripe_size,
            "stride": self.row_index_stride,
            "bloom_columns": bloom or None,
        }
        overrides: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
        WriterSettings(**overrides)  # refuses what cannot be written before anything is planned
        return Writing(
            overrides,
            task_bytes,
            verify=Verify(self.verify),
            reader=Hive(self.reader) if self.reader else None,
            apply_all_deletes=apply_all_deletes,
        )


@dataclass(frozen=True, kw_only=True)
class CompactOptions(Options):
    """Which compaction, when, and how."""

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
    order_by: str | None = option(
        None,
        "--order-by",
        metavar="COLUMNS",
        typed=True,
        completes="columns",
        help="With --rebalance: sort all rows, 'day desc, id'.",
    )
    dry_run: bool = option(False, "-n", "--dry-run", help="Show the plan and stop.")
    offline: bool = option(
        False,
        "--offline",
        typed=True,
        help="Nothing reads the tables meanwhile: lets a minor compaction rename twice, and an object store show "
        "several buckets.",
    )
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
    properties: tuple[tuple[str, str], ...] = option(
        (),
        "--property",
        kind=Kind.PAIRS,
        metavar="KEY=VALUE",
        help="A table property for --auto, e.g. compactorthreshold.hive.compactor.delta.num.threshold=4. Repeatable.",
    )
    min_deltas: int | None = option(
        None,
        "--min-deltas",
        kind=Kind.COUNT,
        help="Leave locations with fewer deltas alone; with --auto instead of Hive's count (more than 10).",
    )
    max_ratio: float | None = option(
        None,
        "--max-ratio",
        kind=Kind.RATIO,
        metavar="R",
        help="With --auto: major when the deltas have more than R of the base's bytes, instead of 0.1.",
    )
    window: DailyWindow | None = option(
        None, "--window", kind=Kind.WINDOW, help="Work only in these hours, e.g. 01:00-05:00, local time."
    )
    deadline: float | None = option(None, "--deadline", kind=Kind.DURATION, help="End after this long, e.g. 2h or 30m.")
    max_bytes: int | None = option(
        None, "--max-bytes", kind=Kind.SIZE, help="Read at most this much: those whose readers gain most first."
    )
    tasks: TaskOptions = group(TaskOptions)
    writing: WriteOptions = group(WriteOptions)
    locks: LockOptions = group(LockOptions)
    take_over: bool = option(
        False, "--take-over", typed=True, help="Do what waits in Hive's queue for the same location in its place."
    )
    wait: float | None = option(
        None,
        "--wait",
        kind=Kind.DURATION,
        help="Wait this long for Hive's own compaction of the same location, and for the lock of --rebalance, e.g. 2h.",
    )

    @property
    def mode(self) -> Mode:
        """The compaction that is asked for.

        Raises:
            UsageProblem: none or several are.
        """
        from acidctl.compaction.request import Mode

        modes = [mode for mode in _MODES if getattr(self, mode)]
        if len(modes) != 1:
            what = "no compaction is chosen" if not modes else f"{' and '.join(modes)} exclude each other"
            raise UsageProblem(what, "", "give one of --major, --minor, --rebalance and --auto")
        return Mode(modes[0])

    @property
    def thresholds(self) -> Thresholds:
        """The thresholds by which --auto decides.

        Raises:
            UsageProblem: a property that decides nothing.
        """
        from acidctl.acid.triggers import NO_AUTO, Thresholds

        known = dict(self.properties)
        unknown = [key for key in known if not (key in NO_AUTO or key.startswith(_DECIDING))]
        if unknown:
            what = f"--property {unknown[0]} decides nothing"
            raise UsageProblem(what, "", f"known are compactorthreshold.<key> and {NO_AUTO[0]}")
        limits = Thresholds().with_properties(known)
        if self.min_deltas is not None:
            limits = replace(limits, delta_count=self.min_deltas - 1)
        return limits if self.max_ratio is None else replace(limits, delta_ratio=self.max_ratio)

    def request(self, where: Selection, events: Events, run_id: str = "") -> CompactionRequest:
        """Return what is asked of every location."""
        from acidctl.acid.triggers import is_auto_off
        from acidctl.compaction.request import CompactionRequest

        return CompactionRequest(
            self.mode,
            self.thresholds,
            is_auto_off(dict(self.properties)),
            self.min_deltas or 0,
            self.visibility_txn or 0,
            where.table_type,
            self.force,
            self.offline,
            self.dry_run,
            take_over=self.take_over,
            wait=self.wait or 0.0,
            writing=self.writing.writing(self.tasks.task_bytes, apply_all_deletes=self.apply_all_deletes),
            locking=self.locks.locking(events.warn, where.resolver.spec.age),
            buckets=self.buckets or 0,
            order_by=self.order_by or "",
            night=run_id,
        )
