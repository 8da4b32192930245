"""Training on several workers: item rows sharded, dense weights replicated, one program on every worker."""
