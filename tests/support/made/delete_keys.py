"""Keys of rows, a few that often meet."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from acidctl.rows.read.delete_set import Keys

row_keys = st.tuples(st.integers(0, 4), st.sampled_from([0, 536870912, 536870913, 536936448]), st.integers(0, 6))


def keys_of(rows: list[tuple[int, int, int]]) -> Keys:
    columns = np.array(rows, np.int64).reshape(-1, 3)
    return Keys(columns[:, 0].copy(), columns[:, 1].copy(), columns[:, 2].copy())
