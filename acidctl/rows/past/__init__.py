"""The history of rows: by write id, of one row, and between two snapshots."""
