"""A streaming writer's file, of which only the first part was committed."""

from __future__ import annotations

from support.files.acid_files import insert

DELTA = "delta_0000001_0000003"

FILE = f"{DELTA}/bucket_00000"

SIDE = f"{FILE}_flush_length"

FIRST = [insert(1, row) for row in range(3)]

SECOND = [insert(2, row) for row in range(4)]
