"""What goes wrong in tests: crashes, faults of stores and lines, tasks that die."""
