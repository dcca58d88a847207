"""A table is found by its directory, however the metastore and the user spell the same place."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.metastore.fake_hive import FakeHive

from acidctl.location.snapshot_resolver import open_warehouse
from acidctl.location.walk import WalkedLocation


@pytest.mark.parametrize(
    ("location", "store", "is_known"),
    [
        ("hdfs://nn/w/t", "hdfs://nn:8020", True),
        ("hdfs://nn:8020/w/t/", "hdfs://other", True),
        ("hdfs://cluster//w/./t", "webhdfs://nn:9870", True),
        ("hdfs:/w/t", "hdfs://nn", True),
        ("HDFS://NN/w/t", "hdfs://nn", True),
        ("hdfs://nn/w/T", "hdfs://nn", False),
        ("hdfs://nn/w/x%2Ft", "hdfs://nn", False),
        ("s3a://bucket/w/t/", "s3://bucket", True),
        ("s3n://Bucket//w//t", "s3://bucket", True),
        ("s3a://other/w/t", "s3://bucket", False),
        ("s3a://bucket/w/t?x", "s3://bucket", False),
        ("s3a://bucket/w/t#x", "s3://bucket", False),
        ("gcs://bucket/w/t", "gs://bucket", True),
        ("abfss://c@account/w/t", "abfs://c@ACCOUNT", True),
        ("abfss://c@account/w/t", "abfs://c@other", False),
        ("hdfs://nn/w/t", "s3://nn", False),
    ],
)
def test_spellings_of_one_place(location: str, store: str, is_known: bool) -> None:
    fs = cast(Any, SimpleNamespace(display=lambda path: f"{store}{path}"))
    with FakeHive(4) as fake:
        fake.table("s", "called_otherwise", location)
        warehouse = open_warehouse(fake.address)
        assert warehouse
        assert bool(warehouse.place_at(fs, WalkedLocation("/w/t", "t"))) is is_known
        warehouse.close()


@pytest.mark.parametrize(
    ("location", "partition"),
    [("hdfs://nn/w/a=1/b=2", ()), ("hdfs://nn/w/a=1", (("b", "2"),)), ("hdfs://nn/w", (("a", "1"), ("b", "2")))],
)
def test_a_table_s_directory_may_be_called_as_a_partition_is(
    location: str, partition: tuple[tuple[str, str], ...]
) -> None:
    fs = cast(Any, SimpleNamespace(display=lambda path: f"hdfs://nn{path}"))
    with FakeHive(4) as fake:
        fake.table("s", "t", location)
        warehouse = open_warehouse(fake.address)
        assert warehouse
        known = warehouse.place_at(fs, WalkedLocation("/w/a=1/b=2", "w", (("a", "1"), ("b", "2"))))
        assert known
        assert (known.location.table, known.location.partition) == ("s.t", partition)
        warehouse.close()
