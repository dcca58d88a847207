"""`acidctl compact --check-inputs`: what nobody has read for years is read before it is put together."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from acidctl.cli.output.progress import progress
from acidctl.errors import BadDataError
from acidctl.validation.findings import Depth, Severity
from acidctl.validation.model import Options, Place
from acidctl.validation.run import validate

if TYPE_CHECKING:
    from acidctl.cli.maintain.compact_results import Printer
    from acidctl.compaction.plan import CompactionPlan
    from acidctl.validation.model import Report

_SHOWN = 3


def sound(plans: Sequence[CompactionPlan], jobs: int | None, printer: Printer) -> Iterator[CompactionPlan]:
    """The plans of locations in which `acidctl validate --deep` finds no error; the others are refused.

    Args:
        jobs: processes that read; None for one a core.
    """
    options = Options(Depth.DEEP, processes=jobs or len(os.sched_getaffinity(0)), now=time.time())
    places = [Place(p.snapshot.fs, p.snapshot.path, p.snapshot.write_ids, p.snapshot.txns) for p in plans]
    with progress("checking parts") as bar:
        for plan, report in zip(plans, validate(places, options, bar.reach), strict=True):
            if why := _against(report):
                shown = plan.snapshot.fs.display(plan.snapshot.path)
                error = BadDataError(f"will not compact {shown}", why, f"see `acidctl validate --deep {shown}`")
                printer.failed(shown, error)
            else:
                yield plan


def _against(report: Report) -> str:
    """What a compaction would make permanent, or could not read; empty where there is nothing."""
    found = [f"{one.rule} {one.path}: {one.message}" for one in report.findings if one.severity is Severity.ERROR]
    found += [f"{one.path} could not be checked: {one.error.what}" for one in report.unchecked]
    more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return "; ".join(found[:_SHOWN]) + more
