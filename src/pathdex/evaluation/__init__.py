"""Metrics, the paper's protocol, and where retrieval loses."""
