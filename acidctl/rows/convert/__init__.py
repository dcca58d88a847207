"""Conversion of values of older files to the table's columns, the way Hive does it."""
