"""The driver: which Java, its process, the session and its settings, and what its failures mean."""
