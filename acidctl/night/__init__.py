"""One night over a warehouse: what is due compacted, what is obsolete cleaned, what is old in the trash purged."""
