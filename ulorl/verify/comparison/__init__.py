"""Whether two parsed values are equal, different, or not to be decided."""
