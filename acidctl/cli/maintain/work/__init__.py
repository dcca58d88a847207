"""What the commands that compact, clean and undo do, and what they say."""
