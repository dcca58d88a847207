"""ORC files written: rows encoded into stripes, stripes copied or changed, and a tail of our own around them."""
