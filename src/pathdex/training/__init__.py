"""Training: the loop, its phases, callbacks and checkpoints."""
