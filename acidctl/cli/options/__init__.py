"""Options and arguments: their types, and those that several commands share."""
