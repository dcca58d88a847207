"""Plans of rescues in files: what a human said of each table, and a digest of what was planned."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from acidctl import __version__
from acidctl.base.errors import BadDataError
from acidctl.location.change.own_files import replace_file
from acidctl.rescue.plan import RescuePlan, Wishes
from acidctl.storage.os_errors import mapped

_KIND, _VERSION = "acidctl-rescue-plan", 1
_MOST_BYTES = 1 << 28


@dataclass(frozen=True, slots=True)
class SavedRescue:
    """The plan of one table, as it was saved.

    Attributes:
        name: ``hive:db.t``.
        digest: of the plan: another one is refused.
    """

    name: str
    wishes: Wishes
    digest: str


def write_plans(path: str, plans: Sequence[RescuePlan]) -> None:
    """Write plans to a file in one step; an existing file is replaced.

    Raises:
        AccessError, NotFoundError, StorageError: the file cannot be written.
    """
    tables = [
        {
            "table": plan.location,
            "digest": plan.digest,
            "abortedIds": sorted(plan.wishes.aborted),
            "asideIds": sorted(plan.wishes.aside_ids),
            "asideNames": sorted(plan.wishes.aside_names),
            **plan.facts(),
        }
        for plan in plans
    ]
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    content = {"kind": _KIND, "schema_version": _VERSION, "acidctl": __version__, "created": created, "tables": tables}
    with mapped("write", path):
        replace_file(Path(path), f"{json.dumps(content, indent=1)}\n".encode("ascii"), is_private=True)


def read_plans(path: str) -> list[SavedRescue]:
    """Read the plans of a file.

    Raises:
        NotFoundError, AccessError: the file cannot be read.
        BadDataError: acidctl did not write it.
    """
    with mapped("read", path), Path(path).open("rb") as file:
        data = file.read(_MOST_BYTES)
    try:
        content = json.loads(data)
        if (content["kind"], content["schema_version"]) != (_KIND, _VERSION):
            raise ValueError
        return [
            SavedRescue(
                str(one["table"]),
                Wishes(
                    frozenset(map(int, one["abortedIds"])),
                    frozenset(map(int, one["asideIds"])),
                    frozenset(map(str, one["asideNames"])),
                ),
                str(one["digest"]),
            )
            for one in content["tables"]
        ]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        why = "it does not hold a plan of a rescue, or it is damaged"
        raise BadDataError(f"cannot use {path}", why, "make a new one: `acidctl hive rescue --plan FILE`") from error
