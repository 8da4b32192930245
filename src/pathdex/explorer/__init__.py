"""What was learned, for people to look at: overview, paths, items, the course of a query, replay and comparison."""
