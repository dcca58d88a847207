"""The tags by which the jobs of a statement are cancelled."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from acidctl.spark.writing import frame_jobs


@pytest.mark.parametrize("version", ["3.5.9", "4.0.5"])
def test_jobs_of_a_statement_that_fails_are_cancelled(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session of Spark 3.5 has no tags, its context has."""
    monkeypatch.setattr(frame_jobs, "ship_to", lambda _: None)
    frame = Mock()
    spark = frame.sparkSession
    spark.version, spark.sparkContext.master = version, "yarn"
    tags = spark.sparkContext if version.startswith("3.5") else spark
    names = ("addJobTag", "cancelJobsWithTag", "removeJobTag")
    add, cancel, remove = (getattr(tags, name) for name in (names if tags is not spark else _OF_SESSIONS))
    with pytest.raises(ZeroDivisionError), frame_jobs._ready(frame):
        (tag,) = add.call_args.args
        raise ZeroDivisionError
    cancel.assert_called_once_with(tag)
    remove.assert_called_once_with(tag)


_OF_SESSIONS = ("addTag", "interruptTag", "removeTag")
