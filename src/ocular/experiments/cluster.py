"""Where jobs run: in processes of this machine, or on the workers of a dask cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import joblib

from ocular.errors import InputError

_SECONDS_TO_ANSWER = 10


@contextmanager
def workers_at(scheduler: str | None, workers: int) -> Iterator[int]:
    """How many jobs go on at once inside: `workers` processes here, or as many as the cluster has workers.

    Everything that joblib runs inside goes to the cluster: sweeps, and the stages of a calibration by parts.
    """
    if scheduler is None:
        yield workers
        return
    with _client(scheduler) as client:
        threads = client.nthreads()
        if len(threads) < 2 or set(threads.values()) != {1}:  # joblib would do the jobs of one worker here
            raise InputError(
                f"the cluster at {scheduler} has workers of {sorted(threads.values())} threads; allowed are "
                "two or more workers of one thread each (dask worker --nthreads 1)"
            )
        with joblib.parallel_config(backend="dask", client=client):
            yield len(threads)


def _client(scheduler: str) -> Any:
    try:
        import distributed  # slow, and most never need it
    except ImportError as error:
        raise InputError(
            "--scheduler needs dask, which is not installed; allowed is: pip install 'ocular[dask]'"
        ) from error
    try:
        connect: Any = distributed.Client  # untyped
        return connect(scheduler, timeout=_SECONDS_TO_ANSWER, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InputError(
            f"no dask scheduler answers at {scheduler!r}; allowed is the address that `dask scheduler` "
            "prints, such as tcp://127.0.0.1:8786"
        ) from error
