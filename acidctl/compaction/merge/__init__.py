"""One bucket of a full-ACID table: sorted events merged, clean stripes copied, the written file joined and proven."""
