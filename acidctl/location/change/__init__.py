"""Locks, journals and publications, which keep a change of a location whole."""
