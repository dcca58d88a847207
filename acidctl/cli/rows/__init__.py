"""Commands that print rows: current rows, earlier states, and their history."""
