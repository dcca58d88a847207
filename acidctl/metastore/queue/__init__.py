"""Hive's queue of compactions: seen, asked for, worked on."""
