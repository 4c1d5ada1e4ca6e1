"""``python -m remem.cli``."""

from remem.cli.entry import script

if __name__ == "__main__":
    script()
