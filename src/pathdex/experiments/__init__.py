"""The paper's comparison on any data: plan, steps that are done once, statistics, report."""
