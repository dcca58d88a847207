"""What happened to rows: by write id, to one row, and between two snapshots."""
