"""How the autoencoder is trained: apart from the training itself, so that naming settings loads no torch."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ocular.errors import InputError, check_number, check_whole

CHECKPOINT_KIND, CHECKPOINT_VERSION = "autoencoder training", 1  # of the sealed file of a training under way
FEWEST = 20  # distinct footprints below which a held-out tenth says nothing


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """How the autoencoder is trained."""

    latent_dim: int = 6
    most_footprints: int = 6000  # distinct ones drawn, a tenth of them held out
    epochs: int = 12
    patience: int = 3  # epochs without a lower held-out loss before training stops
    batch: int = 16
    learning_rate: float = 4e-3  # the highest; a short rise, then a cosine down to nothing
    warm_up: float = 0.1  # share of the steps in which the rate rises

    def __post_init__(self) -> None:
        for name in ("latent_dim", "epochs", "patience", "batch", "most_footprints"):
            check_whole(name, getattr(self, name))
        check_number("learning_rate", self.learning_rate)
        check_number("warm_up", self.warm_up)
        for name in ("latent_dim", "epochs", "patience", "batch"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}; allowed is at least 1")
        if self.most_footprints < FEWEST:
            raise InputError(f"most_footprints is {self.most_footprints}; allowed is at least {FEWEST}")
        if not 0 < self.learning_rate < math.inf:
            raise InputError(f"learning_rate is {self.learning_rate}; allowed is a positive number")
        if not 0 < self.warm_up < 1:
            raise InputError(f"warm_up is {self.warm_up}; allowed is 0 < warm_up < 1")
