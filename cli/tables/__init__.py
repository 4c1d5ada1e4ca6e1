"""The rows of the command table, one module for each group of commands."""
