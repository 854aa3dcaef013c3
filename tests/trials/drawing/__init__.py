"""What the trial of draws is made of: a layout of rows, the published rule once more, exact tails, and the telling."""
