"""Supervised dimensionality reduction: the few directions that keep the classes apart."""
