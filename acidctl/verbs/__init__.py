"""What acidctl can do with a table: one module and one set of options a verb, for every way in."""
