"""A memory you can correct: content-addressed, cited, verifiable, local."""

__version__ = "0.1.0"
