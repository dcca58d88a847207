"""How each type of ORC is written in JSON: the one table, for docs/reference/types.md and the man page.

The forms are those of ``hive --orcfiledump -d`` (ORC's Java ``PrintData``), with these differences, all of them
on purpose:

* ``float`` prints the shortest digits that give the same 32-bit number (``0.1``); Java widens it to 64 bits first
  (``0.10000000149011612``).
* ``NaN`` and the infinities are strings, because JSON has no such numbers; Java writes a bare ``NaN``.
* ``char(n)`` is padded with blanks to n characters, as Hive's queries show it; Java's dump trims it.
* ``timestamp with local time zone`` prints the instant in UTC; Java prints it in the zone of the machine.
* Years before 1 and after 9999 are astronomical years of the proleptic Gregorian calendar: year 0 is 1 BC
  (``0000``), the year before it ``-0001``; years past 9999 simply have more digits (``10000-01-01``).
* Bytes of a string that are not UTF-8 become U+FFFD.
* Control, format and other invisible characters are written as ``\\uXXXX``, in names too: the same text for whoever
  parses it, and no command to a terminal.
"""

from __future__ import annotations

from typing import NamedTuple


class JsonForm(NamedTuple):
    """One row of the table.

    Attributes:
        hive_type: the type's name in Hive.
        form: the JSON form in words.
        example: a JSON text.
    """

    hive_type: str
    form: str
    example: str


FORMS: tuple[JsonForm, ...] = (
    JsonForm("boolean", "true or false", "true"),
    JsonForm("tinyint, smallint, int, bigint", "number", "-42"),
    JsonForm(
        "float, double",
        'number, the fewest digits that read back as the same value; "NaN", "Infinity" and "-Infinity" are strings',
        "0.1",
    ),
    JsonForm("decimal(p,s)", "string, plain digits without trailing zeros after the point", '"-1.5"'),
    JsonForm("string, varchar(n)", "string; bytes that are not UTF-8 become U+FFFD", '"a\\tb"'),
    JsonForm("char(n)", "string, padded with blanks to n characters", '"ab   "'),
    JsonForm("binary", "array of byte values from 0 to 255", "[1,255]"),
    JsonForm("date", "string yyyy-MM-dd", '"2004-03-23"'),
    JsonForm(
        "timestamp", "string yyyy-MM-dd HH:mm:ss.f, one to nine digits after the point", '"1971-09-01 06:11:38.0"'
    ),
    JsonForm("timestamp with local time zone", "like timestamp; the instant in UTC", '"1971-09-01 04:11:38.0"'),
    JsonForm("array<t>", "array", "[1,null]"),
    JsonForm("map<k,v>", "array of objects, in the order stored", '[{"_key":"a","_value":1}]'),
    JsonForm("struct<...>", "object, fields in the order of the schema", '{"x":1,"y":null}'),
    JsonForm("uniontype<...>", "the form of the value that is set", '"a"'),
    JsonForm("any type, null", "null", "null"),
)
