"""The work of a sleep: one module for each thing that a consolidation does."""
