"""Fixtures that the whole suite shares."""

from __future__ import annotations

import os
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from support import memory_store
from support.paths import DATA, REPO

from acidctl.cli.output import redact
from acidctl.storage import registry

pytest_plugins = (
    "support.command_line",  # acidctl, crud, terminal
    "support.judge.fixtures",  # hive, java
    "support.spark.fixtures",  # played, cluster, child_environ, python
    "support.spark_session",  # spark
    "support.stores",  # store, hdfs, s3_options, bucket
)


OF_THE_USER = (
    "ACIDCTL_CONFIG", "ACIDCTL_METASTORE_PASSWORD", "ACIDCTL_METASTORE_TOKEN", "ACIDCTL_PROFILE", "COLUMNS",
    "HADOOP_CONF_DIR", "HADOOP_HOME", "HADOOP_TOKEN_FILE_LOCATION", "HADOOP_USER_NAME", "HIVE_CONF_DIR", "HIVE_HOME",
    "HMS_JWT",
)  # fmt: skip
"""Variables that lead to a metastore, or to a file system, that is not of the tests; and of his terminal."""

memory_store.install()

settings.register_profile("untimed", deadline=None)  # nothing is timed in tests: a busy machine is no fault
settings.load_profile("untimed")


def pytest_xdist_auto_num_workers() -> int:
    """Return how many processes ``-n auto`` runs: one more than cores, as many tests wait for a child or timer."""
    return len(os.sched_getaffinity(0)) + 1


def pytest_configure(config: pytest.Config) -> None:
    """Leave the order of groups to `_put_long_groups_first`."""
    config.option.loadscopereorder = False


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist, which writes the groups into the ids of the tests
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that are left out of a sample; let one process run all tests of a file (``--dist loadgroup``).

    Tests of a file share its fixtures, a server or a session of Spark; and pytest-xdist hands out a file faster than
    its tests one by one.
    """
    seen: Counter[str] = Counter()
    for item in items:
        if sampled := item.get_closest_marker("sampled"):
            function = item.nodeid.partition("[")[0]
            index, every = seen[function], sampled.args[0] if sampled.args else 0
            seen[function] += 1
            if index % every if every else index:
                item.add_marker("by_hand" if any(item.iter_markers("server")) else "slow")
        item.add_marker(pytest.mark.xdist_group(_group_of(item)))
    _take_turns(items)


def _take_turns(items: list[pytest.Item]) -> None:
    """Keep one value of the parameters that the mark `in_turn` names, for each set of the other parameters.

    The next set, and the next test of the file, keep the next value. Tests with the other values are by_hand.
    """
    sets: dict[tuple[str, str, str], list[pytest.Item]] = {}
    for item in items:
        mark, called = item.get_closest_marker("in_turn"), getattr(item, "callspec", None)
        if mark and called and {*mark.args} <= called.params.keys() and not item.get_closest_marker("by_hand"):
            others = str([value for name, value in called.params.items() if name not in mark.args])
            sets.setdefault((str(item.path), item.nodeid.partition("[")[0], others), []).append(item)
    turns: Counter[str] = Counter()
    for (path, _, _), alike in sets.items():
        stays = alike[turns[path] % len(alike)]
        turns[path] += 1
        for item in alike:
            if item is not stays:
                item.add_marker("by_hand")


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist, which reports the order of the tests
def pytest_collection_finish(session: pytest.Session) -> None:
    """Groups that are not kept start every server and every session of Spark twice: rather no run than such a one.

    Groups that take long come first: else one process works on the last of them while the others have nothing to do.
    """
    if getattr(session.config.option, "loadgroup", False):
        lost = [
            item.nodeid for item in session.items if item.get_closest_marker("xdist_group") and "@" not in item.nodeid
        ]
        if lost:
            raise pytest.UsageError(f"pytest-xdist does not group {lost[0]} and {len(lost) - 1} other tests")
        _put_long_groups_first(session.items)


def _put_long_groups_first(items: list[pytest.Item]) -> None:
    """Put groups on a Hive first, then those with another server or Spark; pytest-xdist itself counts tests only."""
    groups = [_group_of(item) for item in items]
    sizes = Counter(groups)
    starts = [any(mark.name in ("server", "spark") for mark in item.iter_markers()) for item in items]
    starting = {group for group, is_one in zip(groups, starts, strict=True) if is_one}
    keys = [(not name.startswith("hive "), name not in starting, -sizes[name], name) for name in groups]
    order = sorted(range(len(items)), key=keys.__getitem__)
    items[:] = [items[place] for place in order]


def _group_of(item: pytest.Item) -> str:
    if "real_hives" in getattr(item, "fixturenames", ()):
        parameters = getattr(item, "callspec", None)
        return f"hive {parameters.params.get('real_hive', 4) if parameters else 4}"
    return str(item.path.relative_to(REPO))


@pytest.fixture(scope="session", autouse=True)
def no_settings_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What the user who runs the tests has configured, or logged in to, is not part of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        for name in OF_THE_USER:
            patch.delenv(name, raising=False)
            os.unsetenv(name)  # readline, which pytest loads, tells children of COLUMNS behind Python's back
        yield


@pytest.fixture(scope="session")
def records_of_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("states")


@pytest.fixture(autouse=True)
def no_state_of_other_tests(records_of_runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run on record at the same places, ``hive:s.*`` for one, is not the run before."""
    monkeypatch.setenv("XDG_STATE_HOME", str(records_of_runs / uuid.uuid4().hex))


@pytest.fixture(autouse=True)
def no_secrets_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command line's secrets are hidden as long as its process lives: here that of thousands of tests."""
    monkeypatch.setattr(redact, "_known", set())


@pytest.fixture
def compacted_meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Do something as soon as a location was listed, and say once that the lists are older than that."""

    def install(change: Callable[[], object]) -> None:
        def is_stale(*_: object) -> bool:
            return bool(todo) and (todo.pop()(), True)[1]

        todo = [change]
        monkeypatch.setattr("acidctl.location.table_location.is_any_stale", is_stale)

    return install


@pytest.fixture
def tasks_run_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the local engine run tasks in this process, as for a store in memory, so that tests see what they do."""
    monkeypatch.setattr(registry, "is_shared", lambda _: False)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of ORC files and tables that other projects published; they are never copied into this one."""
    path = Path(os.environ.get("ACIDCTL_SHARED_DATA", REPO.parent / "shared" / "data"))
    if not path.is_dir():
        pytest.skip(f"third-party test files are not here: {path} (set ACIDCTL_SHARED_DATA)")
    return path


@pytest.fixture(scope="session")
def own_data() -> Path:
    """Tables and cases that live in this repository."""
    return DATA
