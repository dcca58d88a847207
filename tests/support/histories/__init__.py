"""Histories of tables that Hive and acidctl write in turn, beside a model in plain Python."""
