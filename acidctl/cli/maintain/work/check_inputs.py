"""`acidctl compact --check-inputs`: what nobody has read for years is read before it is put together."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence

from acidctl.cli.output.progress import progress
from acidctl.cli.report.outcomes import Outcomes
from acidctl.compaction.request import Planned
from acidctl.errors import BadDataError
from acidctl.validation.findings import Depth, Severity
from acidctl.validation.model import Options, Place, Report
from acidctl.validation.run import validate

_SHOWN = 3


def sound(planned: Sequence[Planned], jobs: int | None, printer: Outcomes) -> Iterator[Planned]:
    """Those of locations in which `acidctl validate --deep` finds no error; the others are refused.

    Args:
        jobs: processes that read; None for one per core.
    """
    options = Options(Depth.DEEP, processes=jobs or len(os.sched_getaffinity(0)), now=time.time())
    snapshots = [one.plan.snapshot for one in planned]
    places = [Place(seen.fs, seen.path, seen.write_ids, seen.txns) for seen in snapshots]
    with progress("checking parts") as bar:
        for one, report in zip(planned, validate(places, options, bar.reach), strict=True):
            if why := _against(report):
                hint = f"see `acidctl validate --deep {one.location}`"
                printer.failed(one.location, BadDataError(f"will not compact {one.location}", why, hint))
            else:
                yield one


def _against(report: Report) -> str:
    """What a compaction would make permanent, or could not read; empty where there is nothing."""
    found = [f"{one.rule} {one.path}: {one.message}" for one in report.findings if one.severity is Severity.ERROR]
    found += [f"{one.path} could not be checked: {one.error.what}" for one in report.unchecked]
    more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return "; ".join(found[:_SHOWN]) + more
