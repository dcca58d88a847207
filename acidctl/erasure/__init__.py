"""Which files still hold rows that meet a condition, what makes them go, and the proof that none does."""
