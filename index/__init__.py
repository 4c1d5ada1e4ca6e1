"""Projections and reading: analysis, inverted index, vectors, ranking, context."""
