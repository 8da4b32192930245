"""What a user would pick instead, behind the same contract as Deep Retrieval."""
