"""Training runs, and the paper's comparison on any data: plan, resumable steps, statistics, report."""
