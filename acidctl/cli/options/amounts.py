"""Sizes, durations and times of day on the command line."""

from __future__ import annotations

import re
from datetime import datetime, time, timedelta
from typing import Any, NamedTuple

import click

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


class Size(click.ParamType[int]):
    """Bytes: ``512m``, ``2GiB``, ``1000``; units are powers of 1024, as Hadoop's are."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([kmgtp]?)(?:i?b)?", str(value).strip().lower())
        if not found or float(found[1]) <= 0:
            self.fail(f"{value!r} is no size: write it as 512m or 2g", param, ctx)
        return int(float(found[1]) * 1024 ** " kmgtp".index(found[2] or " "))


class Duration(click.ParamType[float]):
    """Seconds: ``90s``, ``30m``, ``2h``, ``1d``, ``1h30m``, ``0``."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, int | float):
            return float(value)
        text = str(value).strip().lower()
        if not re.fullmatch(r"(\d+(\.\d+)?[smhdw])+|0", text):
            self.fail(f"{value!r} is no duration: write it as 90s, 30m, 2h or 1d", param, ctx)
        return sum(float(number) * _SECONDS[unit] for number, unit in re.findall(r"(\d+(?:\.\d+)?)([smhdw])", text))


class Window(NamedTuple):
    """A part of every day, in local time; it may go over midnight."""

    start: time
    end: time

    def seconds_left(self, now: datetime) -> float | None:
        """Until it ends; None outside it.

        Args:
            now: local time.
        """
        start = now.replace(hour=self.start.hour, minute=self.start.minute, second=0, microsecond=0)
        for day in (0, -1):
            begin = start + timedelta(days=day)
            end = begin.replace(hour=self.end.hour, minute=self.end.minute)
            end += timedelta(days=1 if self.end <= self.start else 0)
            if begin <= now < end:
                return (end - now).total_seconds()
        return None

    def __str__(self) -> str:
        return f"{self.start:%H:%M}-{self.end:%H:%M}"


class WindowType(click.ParamType[Window]):
    """``01:00-05:00``."""

    name = "window"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Window:
        if isinstance(value, Window):
            return value
        try:
            start, end = (datetime.strptime(part.strip(), "%H:%M").time() for part in str(value).split("-"))
        except ValueError:
            self.fail(f"{value!r} is no time window: write it as 01:00-05:00", param, ctx)
        return Window(start, end)


SIZE = Size()
DURATION = Duration()
WINDOW = WindowType()
