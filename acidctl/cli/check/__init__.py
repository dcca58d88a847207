"""Commands that check and repair tables, and that show a demo table, settings and the machine."""
