"""What many locations need, at one look: what is due, what can go, and what needs attention."""
