"""What people do beside releasing: estimate, compare, tell what changed, start a policy, make a lock anew."""
