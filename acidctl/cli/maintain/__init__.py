"""Commands that change tables by compacting and cleaning, and the one that says where it is worth it."""
