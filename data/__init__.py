"""Facts that age, each with its source and date. README.md lists them."""
