"""A simulator of language-model serving: one module, one job. The map is in README.md."""
