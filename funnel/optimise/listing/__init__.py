"""Extreme rays, listed: in closed form, by double description, or all pairs at once."""
