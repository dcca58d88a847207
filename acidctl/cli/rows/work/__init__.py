"""What the commands do that print rows."""
