"""Faults, hostile files, fuzzing, load and odd numbers: what `make test` tries quickly, at length."""
