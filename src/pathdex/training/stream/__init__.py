"""Training on a stream: each event is learned from once, in order, while the catalogue grows."""
