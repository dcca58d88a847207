"""Time zones for sessions, Javas and acidctl's own process, and days and moments at which they are of account."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager

ZONES = (
    "UTC",
    "America/St_Johns",  # 3:30:52 behind before 1935, then 3:30, with daylight saving time
    "Australia/Lord_Howe",  # half an hour of it
    "Asia/Kathmandu",  # 5:45 ahead since 1986, 5:30 before
    "Africa/Monrovia",  # 44:30 minutes behind until 1972
    "Europe/Amsterdam",  # 19:32 minutes ahead until 1937
    "Pacific/Apia",  # a day was left out in 2011
    "America/Sao_Paulo",  # clocks changed at midnight
    "Pacific/Chatham",  # 12:45 ahead, 13:45 in summer
)
"""Offsets that are no whole hours, or minutes, and days on which clocks change."""

DAYS = ("1582-10-15", "1700-02-28", "1899-12-31", "1900-01-01", "1969-12-31", "2011-12-30", "2018-11-04", "9999-12-31")
MOMENTS = (
    *("1582-10-15 00:00:00", "1677-09-21 00:12:43.145224193", "1883-11-18 12:03:58", "1899-12-31 23:59:59.999999999"),
    *("1900-01-01 00:00:00", "1937-07-01 00:00:00.5", "1972-01-07 00:44:30", "1986-01-01 00:15:00"),
    *("2011-12-30 12:00:00", "2018-11-04 00:30:00", "2021-03-14 00:01:30", "2021-03-28 02:30:00.000001"),
    *("2021-04-04 01:45:00", "2021-10-03 02:15:00", "2021-11-07 00:30:00.123", "2038-01-19 03:14:08"),
)

_JAVAS = {3: "America/Los_Angeles", 4: "Asia/Kolkata", 42: "America/St_Johns"}
"""In which daylight saving time has gaps, or offsets are no whole hours."""


def java_zone(version: int, seed: str | None) -> str:
    """The zone of a Hive's Java for all tests of a session: the usual one, or one that a seed chooses."""
    return _JAVAS[version] if seed is None else random.Random(f"{seed} {version}").choice(ZONES)


@contextmanager
def process_zone(zone: str) -> Iterator[None]:
    """Meanwhile this process lives there."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = zone
    time.tzset()
    try:
        yield
    finally:
        os.environ.pop("TZ") if before is None else os.environ.update(TZ=before)
        time.tzset()
