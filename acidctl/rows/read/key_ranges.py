"""Sets of many row keys in little memory: runs of row ids, as writers number them, by write ids and bucket."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from acidctl.rows.read.delete_set import Bools, Longs
from acidctl.rows.read.events import Ids

_Group = tuple[int, int, int]


class KeyRanges:
    """A set of events by (originalTransaction, bucket, rowId, currentTransaction): ACID v1 keeps the key on update.

    Memory: 16 bytes per run of consecutive row ids, so it grows with the gaps that deleted rows leave.
    """

    def __init__(self) -> None:
        self._parts: dict[_Group, list[tuple[Longs, Longs]]] = {}
        self._merged: dict[_Group, tuple[Longs, Longs]] = {}

    def add(self, ids: Ids) -> None:
        """Add the events of a batch, in any order."""
        if not len(ids.keys):
            return
        order, bounds = _grouped(ids)
        for start, end in pairwise(bounds):
            places = order[start:end]
            row_ids = ids.keys.row_id[places]
            breaks = np.flatnonzero(row_ids[1:] != row_ids[:-1] + 1) + 1
            firsts = row_ids[np.concatenate(([0], breaks))]
            lasts = row_ids[np.concatenate((breaks - 1, [len(row_ids) - 1]))]
            group = _group(ids, int(places[0]))
            self._parts.setdefault(group, []).append((firsts, lasts))
            self._merged.pop(group, None)

    def holds(self, ids: Ids) -> Bools:
        """Return a mask of the events of a batch that are in the set."""
        mask = np.zeros(len(ids.keys), np.bool_)
        if not len(ids.keys):
            return mask
        order, bounds = _grouped(ids)
        for start, end in pairwise(bounds):
            places = order[start:end]
            group = _group(ids, int(places[0]))
            if group not in self._parts:
                continue
            firsts, lasts = self._ranges(group)
            row_ids = ids.keys.row_id[places]
            at = np.searchsorted(firsts, row_ids, side="right") - 1
            mask[places] = (at >= 0) & (row_ids <= lasts[np.maximum(at, 0)])
        return mask

    def _ranges(self, group: _Group) -> tuple[Longs, Longs]:
        """Return the runs of a group, by their first row id; runs never overlap unless a table holds rows twice."""
        if group not in self._merged:
            firsts = np.concatenate([part[0] for part in self._parts[group]])
            lasts = np.concatenate([part[1] for part in self._parts[group]])
            order = np.argsort(firsts, kind="stable")
            self._merged[group] = firsts[order], np.maximum.accumulate(lasts[order])
            self._parts[group] = [self._merged[group]]
        return self._merged[group]


def _grouped(ids: Ids) -> tuple[Longs, list[int]]:
    """Return positions sorted by group and row id, and the bounds of the groups."""
    keys = ids.keys
    order = np.lexsort((keys.row_id, ids.current, keys.bucket, keys.original))
    differs = np.zeros(max(0, len(order) - 1), np.bool_)
    for column in (keys.original, keys.bucket, ids.current):
        ordered = column[order]
        differs |= ordered[1:] != ordered[:-1]
    return order, [0, *(np.flatnonzero(differs) + 1).tolist(), len(order)]


def _group(ids: Ids, place: int) -> _Group:
    return int(ids.keys.original[place]), int(ids.keys.bucket[place]), int(ids.current[place])
