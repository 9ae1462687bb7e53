"""Logged transitions on disk: the store, and importers that fill it."""

from ocular.data.store import TransitionStore

__all__ = ["TransitionStore"]
