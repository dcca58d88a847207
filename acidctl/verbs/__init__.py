"""The verbs of acidctl: one module and one dataclass of options each, for the command line, Python and services."""
