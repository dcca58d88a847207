"""What keeps a change of a location whole: lock, journal, publication."""
