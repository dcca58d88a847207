"""The local disk: paths opened without others' links, listings, renames that replace nothing, durable writes."""
