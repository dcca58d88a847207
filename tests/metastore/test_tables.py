"""Tables and partitions, as the metastore has them: what is asked for is what is found, and nothing else."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.metastore.fake_metastore import FakeTables, Refused, escape, fake_metastore

from acidctl.base.errors import NotFoundError
from acidctl.metastore import interface
from acidctl.metastore.errors import MetastoreError
from acidctl.metastore.tables import find_partitions, find_tables, get_table, near_tables

_VALUES = st.text(st.sampled_from("ab.+*?[](){}|^$\\%_/=: é'\"#-"), min_size=1, max_size=4)


def _as_hive_matches(tables: FakeTables, database: str, name: str, values: tuple[str, ...]) -> tuple[str, ...]:
    """Hive makes a pattern of the values, and lets their dots stand for anything; an empty value is any."""
    table = tables.tables[database, name]
    keys = [key.name for key in table.partition_keys]
    some = "/".join(f"{key}={escape(value) if value else '.*'}" for key, value in zip(keys, values, strict=True))
    pattern = re.compile(re.escape(some).replace(r"\.\*", ".*").replace(r"\.", "."))
    return tuple(one for one in tables._names(database, name) if pattern.fullmatch(one))


@given(st.lists(st.tuples(_VALUES, _VALUES), min_size=1, max_size=8, unique=True), st.data())
def test_partitions_of_some_values_are_those_of_these_values_alone(
    there: list[tuple[str, str]], data: st.DataObject
) -> None:
    tables = FakeTables()
    tables.add("db.t", "file:/w/t", "x", "y")
    tables.partitions["db", "t"] = {values: f"file:/w/t/{at}" for at, values in enumerate(there)}
    answers = tables.answers()
    answers["get_partition_names_ps"] = lambda db, t, values, most: _as_hive_matches(tables, db, t, values)
    wanted = data.draw(st.sampled_from(there))
    one = data.draw(st.sampled_from([{"x": wanted[0]}, {"Y": wanted[1]}, {"x": wanted[0], "y": wanted[1]}]))
    with fake_metastore(answers) as server:
        metastore = server.client()
        found = list(find_partitions(metastore, get_table(metastore, "db", "t"), one))
        metastore.close()
    lower = {key.lower(): value for key, value in one.items()}
    assert sorted(dict(each.values)["x"] + "|" + dict(each.values)["y"] for each in found) == sorted(
        f"{x}|{y}" for x, y in there if lower.get("x", x) == x and lower.get("y", y) == y
    )


def test_an_empty_value_is_no_partition_and_not_all_of_them() -> None:
    tables = FakeTables()
    tables.add("db.t", "file:/w/t", "x")
    tables.partitions["db", "t"] = {("1",): "file:/w/t/x=1"}
    with fake_metastore(tables.answers()) as server:
        metastore = server.client()
        with pytest.raises(NotFoundError, match="no partition x="):
            list(find_partitions(metastore, get_table(metastore, "db", "t"), {"x": ""}))
        with pytest.raises(NotFoundError, match="no partition column z"):
            list(find_partitions(metastore, get_table(metastore, "db", "t"), {"z": "1"}))


def test_a_partition_that_is_dropped_while_it_is_asked_for_is_not_there() -> None:
    tables = FakeTables()
    tables.add("db.t", "file:/w/t", "x")
    tables.partitions["db", "t"] = {("1",): "file:/w/t/x=1", ("2",): "file:/w/t/x=2"}
    answers = tables.answers()
    names = answers["get_partition_names"]

    def then_drop(*arguments: object) -> object:
        found = names(*arguments)
        del tables.partitions["db", "t"][("1",)]
        return found

    answers["get_partition_names"] = then_drop
    with fake_metastore(answers) as server:
        metastore = server.client()
        found = list(find_partitions(metastore, get_table(metastore, "db", "t")))
        tables.partitions["db", "t"][("1",)] = "file:/w/t/x=1"
        answers["get_partition_names_ps"] = lambda database, name, values, most: then_drop(database, name, most)
        answers["get_partitions_by_names"] = lambda *_: ()  # it is called otherwise than its values are
        server.answers.update(answers)
        with pytest.raises(NotFoundError, match="no partition x=1 any more"):
            list(find_partitions(metastore, get_table(metastore, "db", "t"), {"x": "1"}))
    assert [one.values for one in found] == [(("x", "2"),)]


def test_what_was_not_asked_for_and_what_comes_twice_is_left_out() -> None:
    tables = FakeTables()
    tables.add("db.t", "file:/w/t", "x")
    tables.add("db.u", "file:/w/u")
    tables.partitions["db", "t"] = {(value,): f"file:/w/t/x={value}" for value in ("a", "A", "%41", "a/b")}
    answers = tables.answers()
    honest, named = answers["get_partitions_by_names"], answers["get_table_objects_by_name_req"]
    more = interface.Partition(("b",), interface.PartitionStorage("file:/elsewhere"))
    short = interface.Partition((), interface.PartitionStorage("file:/elsewhere"))
    answers["get_partitions_by_names"] = lambda *given_: (more, *honest(*given_), short, *honest(*given_))
    answers["get_table_objects_by_name_req"] = lambda request: interface.GetTablesResult(
        (*named(request).tables, tables.tables["db", "u"], *named(request).tables)
    )
    with fake_metastore(answers) as server:
        metastore = server.client()
        found = list(find_partitions(metastore, get_table(metastore, "db", "t")))
        assert sorted(one.values[0][1] for one in found) == ["%41", "A", "a", "a/b"]
        assert [one.full_name for one in find_tables(metastore, "db", "t")] == ["db.t"]


def test_another_table_than_was_asked_for_is_refused() -> None:
    tables = FakeTables()
    tables.add("db.t", "file:/w/t")
    tables.add("db.u", "file:/w/u")
    answers = tables.answers()
    answers["get_table_req"] = lambda request: interface.GetTableResult(tables.tables["db", "u"])
    with fake_metastore(answers) as server, pytest.raises(MetastoreError, match=r"another table than db\.t"):
        get_table(server.client(), "db", "t")


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        ("db.ordrs", "did you mean db.orders or db.orders_old?"),
        ("sale.orders", "did you mean sales.orders?"),
        ("db.zzz", ""),
    ],
)
def test_a_table_that_is_not_there_is_told_with_its_near_names(asked: str, hint: str) -> None:
    tables = FakeTables()
    for name in ("db.orders", "db.orders_old", "db.people", "sales.orders"):
        tables.add(name, "file:/w")
    with fake_metastore(tables.answers()) as server:
        assert near_tables(server.client(), *asked.split(".")) == hint
        before = len(server.calls)
        with pytest.raises(NotFoundError):
            get_table(server.client(), *asked.split("."))
        assert "get_all_databases" not in server.calls[before:], "whoever looks for many tables pays for none of it"


def test_tables_and_databases_that_are_dropped_meanwhile_do_not_hide_the_others() -> None:
    tables = FakeTables()
    for name in ("a.t", "b.t", "c.t"):
        tables.add(name, f"file:/w/{name}")
    answers = tables.answers()
    by_filter, by_name = answers["get_table_names_by_filter"], answers["get_table_objects_by_name_req"]

    def filtered(database: str, *rest: object) -> object:
        if database == "a":
            raise Refused("UnknownDBException", "a")
        return by_filter(database, *rest)

    def named(request: interface.GetTablesRequest) -> object:
        if request.database == "b":
            raise Refused("UnknownDBException", "b")
        return by_name(request)

    answers |= {"get_table_names_by_filter": filtered, "get_table_objects_by_name_req": named}
    with fake_metastore(answers) as server:
        assert [one.full_name for one in find_tables(server.client())] == ["c.t"]


def test_a_server_that_cannot_filter_tables_is_asked_for_all_of_them() -> None:
    tables = FakeTables()
    tables.add("a.t", "file:/w/t")
    tables.add("a.plain", "file:/w/plain", transactional="false")
    answers = tables.answers()

    def cannot(*_: object) -> object:
        raise Refused("InvalidOperationException", "no such filter")

    answers["get_table_names_by_filter"] = cannot
    answers["get_table_meta"] = lambda databases, names, types: tuple(
        interface.TableMeta(database, name, "MANAGED_TABLE") for database, name in tables.tables
    )
    with fake_metastore(answers) as server:
        assert [one.full_name for one in find_tables(server.client())] == ["a.t"]


def test_tables_come_in_batches_and_by_name() -> None:
    tables = FakeTables()
    for number in range(650):
        tables.add(f"a.t{number:03}", f"file:/w/{number}")
    with fake_metastore(tables.answers()) as server:
        found = [one.name for one in find_tables(server.client(), "a", "t*", ["a.t00*"])]
        assert found == [f"t{number:03}" for number in range(10, 650)]
        assert server.calls.count("get_table_objects_by_name_req") == 3
