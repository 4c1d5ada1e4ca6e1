"""The MCP server: a few tools over one store, whose scope and principal no tool can change."""
