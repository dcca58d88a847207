"""Copies in Iceberg's own REST catalog."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import Catalog, load_catalog
from support.made.random_tables import Made, step
from support.migrating import copy
from support.servers.hdfs_server import ServerUnavailable
from support.servers.iceberg_rest_server import IcebergRestServer

from acidctl.base.errors import ConflictError, NotFoundError, RefusedError
from acidctl.iceberg.copy import NewFiles
from acidctl.outcome import Result

pytestmark = [pytest.mark.server]


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The settings of the catalog, which has the namespace db."""
    try:
        server = IcebergRestServer(tmp_path_factory.mktemp("rest"))
    except ServerUnavailable as reason:
        pytest.skip(str(reason))
    found = {"type": "rest", "uri": server.address}
    load_catalog("prod", **found).create_namespace("db")
    yield found
    server.stop()


def rows(catalog: Catalog, name: str) -> list[Any]:
    found = catalog.load_table(name).scan().to_arrow().to_pylist()
    return sorted((tuple(row.values()) for row in found), key=str)


def test_a_copy_follows_its_table(settings: dict[str, str], tmp_path: Path) -> None:
    catalog, choice, made = load_catalog("prod", **settings), random.Random(7), Made(tmp_path / "t")
    made.path.mkdir()
    while not made.values:
        step(made, choice)
    options: dict[str, Any] = {"catalog_option": tuple(settings.items())}
    for at in range(8):
        copy(made.path, "iceberg:prod/db.followed", catch_up=at > 0, **options)
        expected = sorted((tuple(row.values()) for row in made.rows_at(made.last).values()), key=str)
        assert rows(catalog, "db.followed") == expected
        again = copy(made.path, "iceberg:prod/db.followed", catch_up=True, **options)
        assert (again.result, again.snapshot) == (Result.NOTHING_TO_DO, None)
        step(made, choice)


def test_who_commits_second_starts_again(
    settings: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog, made, choice = load_catalog("prod", **settings), Made(tmp_path / "t"), random.Random(8)
    made.path.mkdir()
    while len(made.values) < 2:
        step(made, choice)
    options: dict[str, Any] = {"catalog_option": tuple(settings.items())}
    copy(made.path, "iceberg:prod/db.raced", **options)
    before = rows(catalog, "db.raced")
    while sorted((tuple(row.values()) for row in made.rows_at(made.last).values()), key=str) == before:
        step(made, choice)
    entered, done = NewFiles.__enter__, []

    def overtaken(self: NewFiles) -> NewFiles:
        if not done:
            done.append(True)
            copy(made.path, "iceberg:prod/db.raced", catch_up=True, **options)
        return entered(self)

    monkeypatch.setattr(NewFiles, "__enter__", overtaken)
    with pytest.raises(ConflictError, match="changed by somebody else"):
        copy(made.path, "iceberg:prod/db.raced", catch_up=True, **options)
    expected = sorted((tuple(row.values()) for row in made.rows_at(made.last).values()), key=str)
    assert rows(catalog, "db.raced") == expected


def test_what_is_not_there_or_not_ours(settings: dict[str, str], tmp_path: Path) -> None:
    catalog, made, choice = load_catalog("prod", **settings), Made(tmp_path / "t"), random.Random(9)
    made.path.mkdir()
    while not made.values:
        step(made, choice)
    options: dict[str, Any] = {"catalog_option": tuple(settings.items())}
    with pytest.raises(NotFoundError, match="was not made yet"):
        copy(made.path, "iceberg:prod/db.absent", catch_up=True, **options)
    copy(made.path, "iceberg:prod/db.made", **options)
    catalog.create_table("db.other", catalog.load_table("db.made").schema())
    with pytest.raises(RefusedError, match="will not write to this Iceberg table"):
        copy(made.path, "iceberg:prod/db.other", **options)
