"""Logged transitions on disk: the store, and importers that fill it."""
