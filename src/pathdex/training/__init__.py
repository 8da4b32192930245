"""The EM loop: E-step, M-step, schedule, checkpoints."""
