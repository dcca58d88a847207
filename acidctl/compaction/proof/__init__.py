"""What proves a result: checksums over keys and values, what the store gives back, and a second reader."""
