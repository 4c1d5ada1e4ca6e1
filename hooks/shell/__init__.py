"""The hooks of the shells: scripts as data, and what fills them in."""
