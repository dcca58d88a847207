"""What the commands that look do, and the forms in which they show it."""
