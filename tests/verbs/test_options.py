"""Options of verbs: one dataclass for the command line and for Python."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from acidctl.base.errors import UsageProblem
from acidctl.cli.command_table import command_named
from acidctl.verbs.maintain_options import CleanOptions, PurgeOptions, RestoreOptions
from acidctl.verbs.options import LockOptions, WorkOptions, declared, made
from acidctl.verbs.reading.dump import DumpOptions

VERBS = {"clean": CleanOptions, "dump": DumpOptions, "purge": PurgeOptions, "restore": RestoreOptions}


@pytest.mark.parametrize("name", VERBS)
def test_every_option_is_one_of_the_command_line_with_the_same_default(name: str) -> None:
    command = command_named(name)
    assert command is not None
    params = {param.name: param for param in command.params}
    options = VERBS[name]()
    for path, field, face in declared(VERBS[name]):
        value: Any = options
        for part in path:
            value = getattr(value, part)
        param = params[field.name]
        assert set(face.flags) & {*param.opts, "/".join([*param.opts, *param.secondary_opts])}
        default = (
            param.default if not isinstance(param.default, str) else param.type.convert(param.default, param, None)
        )
        assert default == value, field.name


def test_groups_are_made_with_the_rest() -> None:
    options = made(CleanOptions, {"dry_run": True, "jobs": 2, "lock_wait": 5.0, "older_than": 3600.0})
    assert (options.dry_run, options.older_than) == (True, 3600.0)
    assert (options.work, options.locks) == (WorkOptions(jobs=2), LockOptions(lock_wait=5.0))


@pytest.mark.parametrize("age", [7200, "2h", timedelta(hours=2)])
def test_a_duration_is_taken_in_any_form(age: Any) -> None:
    assert PurgeOptions(older_than=age).older_than == 7200.0
    assert replace(CleanOptions(), older_than=age).older_than == 7200.0


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: PurgeOptions(older_than="soon"),  # type: ignore[arg-type]
        lambda: CleanOptions(trash="bin"),
        lambda: LockOptions(lock=False, break_lock=True),
        lambda: LockOptions(lock=False, lock_wait=1.0),
    ],
)
def test_what_cannot_be_meant_is_refused(wrong: Any) -> None:
    with pytest.raises(UsageProblem):
        wrong()
