"""Commands that print rows: those of now, of earlier states, and what became of them."""
