"""Options of the source `hive_acid`, without Spark."""

from __future__ import annotations

import pytest

from acidctl.base.errors import UsageProblem
from acidctl.spark.datasource.load_options import SourceOptions


def test_a_path_beside_a_table_is_refused() -> None:
    with pytest.raises(UsageProblem, match="both a path and a table"):
        SourceOptions.parse({"path": "/warehouse/t", "table": "db.t"})
    assert SourceOptions.parse({"table": "db.t"}).path == "hive:db.t"
