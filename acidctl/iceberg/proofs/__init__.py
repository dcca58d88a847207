"""The proofs that a copy has the rows of its table: by acidctl, by PyIceberg, and by engines."""
