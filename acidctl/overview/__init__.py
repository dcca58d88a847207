"""The status of many locations: what is due, what can be freed, and what needs attention."""
