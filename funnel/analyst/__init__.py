"""What people do beside releasing: estimate, compare, tell what changed, start a policy, make a lock anew."""

SECONDS = 30.0
"""Seconds that one mechanism may take at one epsilon of a comparison, where the caller does not say."""
ROOM = 0.05
"""Part of epsilon that a lock leaves to drift, unless told otherwise; over a private estimate, none.

There the bound is kept at the noisy counts that the lock pins, and these do not move.
"""
