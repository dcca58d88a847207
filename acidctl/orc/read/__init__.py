"""Rows of an ORC file as Arrow batches: what Arrow itself cannot read, and bounds before it reads."""
