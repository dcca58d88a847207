"""What a location is: found from a name, seen by a snapshot, changed by one run at a time."""
