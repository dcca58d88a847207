"""Where bytes live: one small FileSystem port and its adapters."""
