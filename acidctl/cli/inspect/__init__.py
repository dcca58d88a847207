"""Commands that show the state of tables and files."""
