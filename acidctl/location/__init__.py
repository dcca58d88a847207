"""What a location is: found from a name, known to be transactional or not, and seen by a given snapshot."""
