"""One module a command; each function takes the context and the parameters of the table."""
