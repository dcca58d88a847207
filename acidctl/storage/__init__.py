"""Access files wherever they are: one FileSystem port and its adapters."""
