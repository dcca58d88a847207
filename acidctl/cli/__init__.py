"""The command line: one module per command, in the folder of its section of the help."""
