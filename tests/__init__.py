"""The tests, in folders that mirror src/bayplan."""
