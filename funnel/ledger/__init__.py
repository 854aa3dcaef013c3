"""What was released before: the journal, what all releases tell together, estimates spent, keys agreed to."""
