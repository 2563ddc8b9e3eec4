"""What a run waits for, and how a poll finds out whether it is there."""
