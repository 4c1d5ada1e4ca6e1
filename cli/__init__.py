"""The command line: parse, call, render. No rule of memory lives here."""
