"""Real storage servers for the tests, started on loopback."""
