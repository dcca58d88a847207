"""Locations: found by names, seen by snapshots, changed by one run at a time."""
