"""The verbs that read rows and events: they change nothing, and give values."""
