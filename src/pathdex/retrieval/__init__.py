"""Index and model to ranked items."""
