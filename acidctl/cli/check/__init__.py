"""Commands that check and mend, and those that show a table to try, settings and the machine."""
