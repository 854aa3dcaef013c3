"""Linear programs, solved again and again, or many at once."""
