"""The query engine: beam search, candidates, filters, reranking, explanations and similar items."""
