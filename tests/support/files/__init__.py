"""Files in tests, byte by byte and row by row."""
