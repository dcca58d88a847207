"""What the commands that check, mend and try do, and what they say."""
