"""Deriving claims from evidence: parsers and narrow rules, each with the span that grounds it."""
