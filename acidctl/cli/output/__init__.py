"""The two output streams: data, messages, tables that fit, progress, and no secrets."""
