"""What Outlast decides, as pure functions and values: no clock, no I/O, no randomness of its own."""
