"""What a channel tells, exactly or enclosed."""
