"""The kernel: brute force, falsified releases, and an environment with nothing but numpy."""
