"""Commands that look, and the forms in which they show what they see."""
