"""The changes by which the columns of a copy follow those of its Hive table: added, renamed and widened ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from acidctl.base.errors import RefusedError
from acidctl.iceberg.fields import Field

_WIDENED = {("int", "long"), ("float", "double")}


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """One change of a column of the copy.

    Attributes:
        old: the column as it is; None if it is new.
        new: the column as the Hive table has it; its ids are not those of the copy.
    """

    old: Field | None
    new: Field

    @property
    def words(self) -> str:
        """Return it in words."""
        if self.old is None:
            return f"{self.new.name} {self.new.type_name} is new"
        if self.old.name != self.new.name:
            return f"{self.old.name} is {self.new.name} {self.new.type_name} now"
        return f"{self.new.name} is {self.new.type_name} now"


def column_changes(wanted: Sequence[Field], present: Sequence[Field]) -> tuple[ColumnChange, ...]:
    """Return the changes from the present columns of the copy to the wanted ones.

    Columns are matched by place, as Hive matches them.

    Raises:
        RefusedError: columns were dropped or changed places, or Iceberg has no such change of a type.
    """
    names = [field.name for field in present]
    changes = []
    for new, old in zip_longest(wanted, present):
        if new is None:
            raise _refused(old.name, "was dropped")
        if old is None:
            if new.name in names:
                raise _refused(new.name, "changed its place")
            changes.append(ColumnChange(None, new))
            continue
        if old.name != new.name and new.name in names:
            raise _refused(new.name, "changed its place")
        if not is_alike(old, new) and not is_widened(old, new):
            raise _refused(new.name, f"was {old.type_name}, and is {new.type_name} now")
        if old.name != new.name or not is_alike(old, new):
            changes.append(ColumnChange(old, new))
    return tuple(changes)


def require_same(wanted: Sequence[Field], present: Sequence[Field]) -> None:
    """Refuse partition columns that are not the same any more.

    Raises:
        RefusedError: see above.
    """
    for new, old in zip_longest(wanted, present):
        if new is None or old is None or new.name != old.name or not is_alike(old, new):
            raise _refused((new or old).name, "is a partition key, and not the same")


def changed_fields(wanted: Sequence[Field], present: Sequence[Field]) -> tuple[Field, ...]:
    """Return the wanted columns with the ids of the present ones; new columns keep their own."""
    return tuple(
        new if old is None else replace(old, name=new.name, kind=new.kind, precision=new.precision)
        for new, old in zip_longest(wanted, present)
    )


def is_alike(one: Field, other: Field) -> bool:
    """Return whether two fields have the same type, names of inner fields included."""
    return one.type_name == other.type_name


def is_widened(old: Field, new: Field) -> bool:
    """Return whether Iceberg reads values of the old type as the new one."""
    if (old.kind, new.kind) in _WIDENED:
        return True
    return old.kind == new.kind == "decimal" and old.scale == new.scale and old.precision < new.precision


def _refused(name: str, what: str) -> RefusedError:
    return RefusedError(
        "cannot catch up",
        f"the columns of the Hive table have changed: {name} {what}",
        "migrate into a new table",
    )
