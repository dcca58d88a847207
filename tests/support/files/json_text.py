"""Rows as JSON lines in one piece."""

from __future__ import annotations

import pyarrow as pa

from acidctl.orc.types import OrcType
from acidctl.rows.export.json_lines import json_buffers


def encode_json_lines(batch: pa.RecordBatch, types: OrcType | None = None) -> bytes:
    """All lines of a batch; `types` as for :func:`json_buffers`."""
    return b"".join(json_buffers(batch, types))
