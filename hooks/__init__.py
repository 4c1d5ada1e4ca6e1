"""Everything that feeds or calls the store without a person typing."""
