"""The stores of databases: each once, and those that cannot be had are left out."""

from __future__ import annotations

from support.metastore.fake_hive import FakeHive

from acidctl.metastore import interface as wire
from acidctl.metastore.client import Metastore
from acidctl.metastore.settings import find_settings
from acidctl.storage.options import StorageOptions
from acidctl.verbs.hive.worker import database_stores


def test_each_store_is_there_once_with_its_options() -> None:
    places = {
        "default": ("hdfs://nn:8020/warehouse", None),
        "sales": ("hdfs://nn:8020/external/sales.db", "hdfs://other:8020/managed/sales.db"),
        "old": ("nonsense://x/y", None),
        "nowhere": (None, None),
    }
    with FakeHive(4) as fake:
        for name, (location, managed) in places.items():
            fake.databases[name] = wire.Database(name, location, managed_location=managed)
        fake.before["get_database"] = lambda: fake.databases.pop("nowhere", None)  # dropped meanwhile
        storage = StorageOptions(
            {"keytab": "/k"}, {"hdfs://": {"principal": "k"}, "hdfs://other:8020": {"principal": "p"}}
        )
        settings = find_settings({"uris": fake.address}, {})
        assert settings
        found = {one.authority: dict(one.options) for one in database_stores(Metastore(settings), storage)}
    login = {name: (options["keytab"], options["principal"]) for name, options in found.items()}
    assert login == {"nn:8020": ("/k", "k"), "other:8020": ("/k", "p")}
