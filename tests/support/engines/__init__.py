"""Real Hives and Trino, beside what acidctl reads and writes."""
