"""From real rows to integer weights that provably lie in the cone."""
