"""What the trial of faults is made of: runs that can be hurt, a world to run in, an oracle, and the faults."""
