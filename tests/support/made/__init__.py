"""Tables and rows that tests make, and what is known of them."""
