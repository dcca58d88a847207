"""What a location is: found from a name, known to be transactional or not, seen by a snapshot, changed by one."""
