"""Files on disk: one atomic writer, array folders, bundles, checkpoints."""
