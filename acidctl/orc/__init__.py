"""What one ORC file says: tail, types, Arrow batches, stripes, the ACID writer."""
