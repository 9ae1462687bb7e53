"""Logged transitions on disk: the store, and importers that fill it."""

from ocular.data.store import TransitionStore, join_logs

__all__ = ["TransitionStore", "join_logs"]
