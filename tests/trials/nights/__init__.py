"""What the simulated year is made of: a table that changes, what befalls it, and an attacker who keeps everything."""
