"""Column generation: the optimum over rays that are too many to list, and the proof that no row is worth more."""
