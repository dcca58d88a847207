"""Options of verbs: one dataclass for the command line and for Python."""

from __future__ import annotations

import importlib
import math
import pkgutil
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import acidctl.verbs
from acidctl.base.errors import UsageProblem
from acidctl.cli.command_table import command_named
from acidctl.verbs.compact_options import CompactOptions, WriteOptions
from acidctl.verbs.maintain_options import CleanOptions, PurgeOptions, RestoreOptions
from acidctl.verbs.options import Kind, LockOptions, Options, WorkOptions, declared, made
from acidctl.verbs.reading.dump import DumpOptions
from acidctl.verbs.reading.validate import ValidateOptions

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


WRONG: dict[Kind, list[Any]] = {
    Kind.FLAG: ["false", "", 0, 1, {}, [], object(), 1.5],
    Kind.COUNT: ["4", 0, -5, 1.5, True, [1], math.nan, timedelta(1)],
    Kind.NUMBER: ["4", -5, 1.5, True, {"a": 1}, b"4"],
    Kind.MOMENT: ["-4", "", "soon", "2026-11-31", -5, 1.5, True, b"4"],
    Kind.SIZE: ["zz", "0", 0, -5, 1.5, True, [1]],
    Kind.DURATION: ["soon", -1, True, [1], math.nan],
    Kind.TEXT: [1, True, b"x", ["a"], {}],
    Kind.FILE: [1, True, ["a"]],
    Kind.LIST: [1, b"x", [1], {"a": "b"}, [["a"]]],
    Kind.NAMES: [1, b"x", [1], {"a": "b"}],
    Kind.PAIRS: [1, "a=b", [1], [("a",)], {"a": 1}, [("a", 1)]],
    Kind.COLUMNS: [1, "a=b", ["ab"], {1: "a"}],
}
WRONG |= {Kind.SECONDS: WRONG[Kind.DURATION], Kind.NEW_FILE: WRONG[Kind.FILE], Kind.DIRECTORY: WRONG[Kind.FILE]}
WRONG |= {Kind.ARGUMENT: WRONG[Kind.TEXT]}


def every_kind(base: type = Options) -> Iterator[type]:
    for kind in base.__subclasses__():
        yield from (kind, *every_kind(kind))


for _, _module, _ in pkgutil.walk_packages(acidctl.verbs.__path__, "acidctl.verbs."):
    importlib.import_module(_module)
FIELDS = sorted(
    {(kind, item.name) for kind in every_kind() for item in fields(kind)}, key=lambda one: (one[0].__name__, one[1])
)


def _is_needed(item: Field[Any]) -> bool:
    return item.default is MISSING and item.default_factory is MISSING


@pytest.mark.parametrize(("kind", "name"), FIELDS, ids=lambda value: getattr(value, "__name__", value))
def test_a_value_of_another_kind_is_refused_with_its_name(kind: type, name: str) -> None:
    faces = {path[0]: face for path, _, face in declared(kind) if len(path) == 1}
    texts = Kind.TEXT, Kind.NAMES
    needed = {path[0]: "x" if face.kind in texts else 1 for path, item, face in declared(kind) if _is_needed(item)}
    wrong = WRONG[faces[name].kind] if name in faces else ["x", 1, object(), {}, PurgeOptions()]
    (item,) = (item for item in fields(kind) if item.name == name)
    for value in [*wrong, *([None] if item.default is not None else [])]:
        with pytest.raises(UsageProblem) as refused:
            kind(**{**needed, name: value})
        assert name in refused.value.what, (value, refused.value)
        assert refused.value.hint, value


@pytest.mark.parametrize(
    ("made_of", "name", "value", "taken"),
    [
        (CleanOptions, "max_bytes", "512m", 512 << 20),
        (CleanOptions, "max_bytes", np.int64(7), 7),
        (CompactOptions, "buckets", np.int32(8), 8),
        (CompactOptions, "wait", np.float32(1.5), 1.5),
        (CleanOptions, "older_than", np.int64(7200), 7200.0),
        (CleanOptions, "plan", Path("plans"), "plans"),
        (ValidateOptions, "rules", "V26", ("V26",)),
        (ValidateOptions, "rules", ["V26", "V27"], ("V26", "V27")),
        (WriteOptions, "properties", {"orc.compress": "zlib"}, (("orc.compress", "zlib"),)),
    ],
)
def test_a_value_may_be_as_python_or_the_command_line_has_it(made_of: Any, name: str, value: Any, taken: Any) -> None:
    found = getattr(made_of(**{name: value}), name)
    assert (found, type(found)) == (taken, type(taken))


@pytest.mark.parametrize("age", [7200, "2h", timedelta(hours=2)])
def test_a_duration_is_taken_in_any_form(age: Any) -> None:
    assert PurgeOptions(older_than=age).older_than == 7200.0
    assert replace(CleanOptions(), older_than=age).older_than == 7200.0


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: PurgeOptions(older_than="soon"),  # type: ignore[arg-type]
        lambda: LockOptions(lock=False, break_lock=True),
        lambda: LockOptions(lock=False, lock_wait=1.0),
    ],
)
def test_what_cannot_be_meant_is_refused(wrong: Any) -> None:
    with pytest.raises(UsageProblem):
        wrong()
