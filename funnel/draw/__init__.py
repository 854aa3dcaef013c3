"""Codes and a key in, codes out, and the check of what came out; nothing else knows randomness."""
