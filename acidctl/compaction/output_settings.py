"""The settings of the files that a compaction writes: those of the newest input, unless the user chose others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from acidctl.acid.compaction_kind import CompactionKind, Hive
from acidctl.base.nearest import member
from acidctl.compaction.proof.verify import Verify
from acidctl.compaction.tasks import JULIAN_GREGORIAN, PROLEPTIC_GREGORIAN, Input
from acidctl.orc.tail import FIRST_READ
from acidctl.orc.write.bloom import bloom_columns
from acidctl.orc.write.writer_settings import CODECS, WriterSettings
from acidctl.rows.foreign.format import Format
from acidctl.rows.read.events import EventFile


@dataclass(frozen=True, slots=True)
class Writing:
    """How the results of compactions are written.

    Attributes:
        overrides: fields of :class:`WriterSettings` that the user chose; with any of them every stripe is re-encoded.
        task_bytes: buckets with more input bytes are cut into segments of about this size; by default they are cut if
            cores would be idle.
        verify: how results are proven.
        reader: the version of Hive that reads the tables. By default it is the version of the metastore; without one,
            whatever versions read differently is refused.
        apply_all_deletes: a major compaction also applies deletes that Hive overlooks because they are in files of
            other buckets, or not sorted. By default such deletes are refused.
    """

    overrides: Mapping[str, Any] = field(default_factory=dict)
    task_bytes: int | None = None
    verify: Verify = Verify.BYTES
    reader: Hive | None = None
    apply_all_deletes: bool = False

    def __post_init__(self) -> None:
        """Accept `reader` as text: ``Writing(reader="hive4")``."""
        if self.reader is not None:
            object.__setattr__(self, "reader", member(Hive, self.reader, "Hive"))

    def settings_for(self, newest: EventFile | None, kind: CompactionKind) -> WriterSettings:
        """Return the recommended settings (section 3.5) with the newest input's codec and stride, and the overrides."""
        tail = newest.tail if newest and newest.format is Format.ORC else None
        make = WriterSettings.for_base if kind is CompactionKind.MAJOR else WriterSettings.for_delta
        settings = make(compression=tail.compression if tail and tail.compression in CODECS else "zlib")
        # Stripes can be copied only into a file of their own stride (see stripes.py).
        if tail and tail.stride:
            settings = replace(settings, stride=tail.stride, bloom_columns=bloom_columns(tail))
        return replace(settings, **self.overrides)


def calendar_of(sources: Sequence[EventFile]) -> int:
    """Return the calendar of the inputs if all have the same; else all dates move to the proleptic calendar."""
    return JULIAN_GREGORIAN if sources and all(source.is_hybrid for source in sources) else PROLEPTIC_GREGORIAN


def inputs_of(sources: Sequence[EventFile]) -> tuple[Input, ...]:
    """Return the files in the form that a task carries."""
    return tuple(
        Input(s.file, s.path, s.length, s.synthetic, tail=s.tail if s.tail.length <= FIRST_READ else None)
        for s in sources
    )
