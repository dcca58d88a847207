"""Transaction lists as plain sets; Hive 2.3's transaction ids stand where Hive 3 has a table's write ids."""

from __future__ import annotations

from dataclasses import dataclass

MAXL = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Txns:
    """What a reader may see: ids up to `hwm` that are neither open nor aborted."""

    hwm: int = MAXL
    open: frozenset[int] = frozenset()
    aborted: frozenset[int] = frozenset()

    @property
    def invalid(self) -> list[int]:
        return sorted(i for i in self.open | self.aborted if i <= self.hwm)

    @property
    def min_open(self) -> int:
        return min((i for i in self.open if i <= self.hwm), default=MAXL)

    def is_valid(self, txn: int) -> bool:
        return txn <= self.hwm and txn not in self.open and txn not in self.aborted

    def accepts_base(self, number: int) -> bool:
        """Whether a compacted base may be read: nothing at or below it is open."""
        return number <= self.hwm and number < self.min_open

    def compactor(self) -> Txns:
        """The compactor's view: everything below the first open id is settled, aborted ids are left out."""
        hwm = min(self.hwm, self.min_open - 1)
        return Txns(hwm, frozenset(), frozenset(i for i in self.aborted if i <= hwm))

    def write_ids(self, table: str = "default.t") -> str:
        """The Hive 3 string of a table's write ids: `default.t:10:6:6,7:8`."""
        opens = sorted(i for i in self.open if i <= self.hwm)
        aborted = sorted(i for i in self.aborted if i <= self.hwm)
        return f"{table}:{self.hwm}:{self.min_open}:{','.join(map(str, opens))}:{','.join(map(str, aborted))}"

    def __str__(self) -> str:
        return self.write_ids("t")[2:]

    @classmethod
    def of_scenario(cls, text: str) -> Txns:
        """The stored scenarios' notation: `all`, `7`, `hwm=4;invalid=2,3` (an uncommitted id counts as aborted)."""
        if text == "all":
            return cls()
        parts = dict(part.split("=") for part in text.split(";")) if "=" in text else {"hwm": text}
        ids = frozenset(int(i) for i in parts.get("invalid", "").split(",") if i)
        return cls(int(parts["hwm"]), frozenset(), ids)
