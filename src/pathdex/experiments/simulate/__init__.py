"""The live experiment of the paper's Section 5 in a simulator: `pathdex simulate`."""
