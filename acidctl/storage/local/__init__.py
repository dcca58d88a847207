"""Access the local disk: list, rename without replacing, write durably, and follow no links of other users."""
