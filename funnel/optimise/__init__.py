"""Polyhedral cones, their extreme rays, and the LP over them. Knows nothing of privacy."""
