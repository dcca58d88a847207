"""The faults of a location: rules, and the checks that find where they are broken (format section 13)."""
