"""Pages and pictures for browsers: one file each, which needs nothing from elsewhere."""
