from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from ocular.encoding import ConvEncoder
from ocular.encoding.autoencoder import GradientStep, build, score
from ocular.encoding.training import TrainingSettings, train
from ocular.errors import InputError, OcularError
from ocular.records import FootprintGeometry, Footprints

LABELS = ("OCCUPIED", "UNKNOWN", "NOMINAL")
GEOMETRY = FootprintGeometry(16, 8)
QUICK = TrainingSettings(latent_dim=3, epochs=4, batch=8)


def half_planes(n: int = 60, seed: int = 0) -> Footprints:
    """Two areas with a straight edge between them: few numbers describe them."""
    rng = np.random.default_rng(seed)
    i, j = np.mgrid[:16, :8]
    normals, offsets = rng.normal(size=(n, 2)), rng.normal(size=n)
    across = normals[:, 0, None, None] * (i - 7.5) / 8 + normals[:, 1, None, None] * (j - 3.5) / 4
    return Footprints((across > offsets[:, None, None] / 2).astype(np.uint8) * 2, LABELS, GEOMETRY)


def same(a: ConvEncoder, b: ConvEncoder) -> bool:
    theirs = b.to_arrays()
    return all(array.tobytes() == theirs[name].tobytes() for name, array in a.to_arrays().items())


def test_learns_to_reconstruct() -> None:
    settings = TrainingSettings(latent_dim=4, epochs=15, batch=8, learning_rate=1e-2)
    heard: list[tuple[int, float, float]] = []
    encoder, report = train(half_planes(120), settings, 0, progress=lambda *news: heard.append(news))
    assert report.held_out_accuracy > 0.8  # a single label everywhere gives about a half
    assert report.accuracy_per_label[1] is None
    assert [epoch for epoch, _, _ in heard] == list(range(1, report.epochs + 1))
    assert report.held_out_loss == min(loss for _, loss, _ in heard)
    assert encoder.encode(half_planes(10).cells).std(axis=0).max() > 0.1


def test_encoder_is_that_of_the_autoencoder() -> None:
    """What is kept gives the latents that the decoder was trained on."""
    settings = TrainingSettings(latent_dim=3, epochs=1, batch=8)
    footprints = half_planes()
    encoder, _ = train(footprints, settings, 0)
    network = build(3, GEOMETRY, 3, 0)
    names = {"0": 1, "2": 2, "4": 3}
    arrays = encoder.to_arrays()
    with torch.no_grad():
        for layer, n in names.items():
            network.encoder[int(layer)].weight.copy_(torch.from_numpy(arrays[f"kernel{n}"]))
            network.encoder[int(layer)].bias.copy_(torch.from_numpy(arrays[f"bias{n}"]))
        network.encoder[7].weight.copy_(torch.from_numpy(arrays["projection"]))
        network.encoder[7].bias.copy_(torch.from_numpy(arrays["offset"]))
        cells = torch.from_numpy(footprints.cells).long()
        one_hot = torch.nn.functional.one_hot(cells, 3).permute(0, 3, 1, 2).float()
        expected = network.encoder(one_hot).numpy()
    np.testing.assert_allclose(encoder.encode(footprints.cells), expected, rtol=1e-4, atol=1e-5)


def test_gradient_is_that_of_the_cross_entropy() -> None:
    network = build(3, GEOMETRY, 3, seed=1)
    cells = torch.from_numpy(half_planes(8).cells)
    one_hot = torch.nn.functional.one_hot(cells.long(), 3).permute(0, 3, 1, 2).float()
    torch.nn.functional.cross_entropy(network(one_hot), cells.long()).backward()
    expected = [parameter.grad.clone() for parameter in network.parameters()]
    GradientStep(network, 8, GEOMETRY)(cells)
    for parameter, gradient in zip(network.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-4, atol=1e-7)


def test_score_counts_pixels() -> None:
    network = build(3, GEOMETRY, 3, seed=1)
    with torch.no_grad():
        network.decoder[-1].weight.zero_()
        network.decoder[-1].bias.copy_(torch.tensor([0.0, 0.0, np.log(2.0)]))
    cells = half_planes(70).cells
    found = score(network, cells)
    assert found.per_label == (0.0, None, 1.0)
    assert found.accuracy == pytest.approx((cells == 2).mean())
    assert found.loss == pytest.approx(np.log(4) - np.log(2) * (cells == 2).mean(), rel=1e-5)


def test_same_seed_same_bytes_whatever_the_threads_and_the_order() -> None:
    footprints = half_planes()
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    first, report = train(footprints, QUICK, 7)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads
    torch.set_num_threads(2)
    try:
        reordered = Footprints(np.concatenate([footprints.cells[::-1]] * 2), LABELS, GEOMETRY)
        second, again = train(reordered, QUICK, 7)
    finally:
        torch.set_num_threads(threads)
    assert same(first, second)
    assert (report.trained_on, report.held_out) == (again.trained_on, again.held_out)
    assert not same(first, train(footprints, QUICK, 8)[0])


@pytest.mark.parametrize("after", [1, 3, 4])
def test_killed_between_epochs_and_resumed_gives_the_same_bytes(tmp_path: Path, after: int) -> None:
    class KilledError(Exception):
        pass

    def kill(epoch: int, *_: float) -> None:
        if epoch == after:
            raise KilledError

    checkpoint = tmp_path / "training.ocular"
    undisturbed, report = train(half_planes(), QUICK, 0)
    with pytest.raises(KilledError):
        train(half_planes(), QUICK, 0, checkpoint=checkpoint, progress=kill)
    epochs: list[int] = []
    resumed, again = train(
        half_planes(), QUICK, 0, checkpoint=checkpoint, progress=lambda epoch, *_: epochs.append(epoch)
    )
    assert epochs == list(range(after + 1, 5))
    assert same(undisturbed, resumed)
    assert again.held_out_loss == report.held_out_loss


def test_refuses_the_checkpoint_of_another_training(tmp_path: Path) -> None:
    checkpoint = tmp_path / "training.ocular"
    train(half_planes(), QUICK, 0, checkpoint=checkpoint)
    with pytest.raises(InputError, match="is of a training with seed 0; allowed is 1"):
        train(half_planes(), QUICK, 1, checkpoint=checkpoint)
    with pytest.raises(InputError, match="is of a training with footprints"):
        train(half_planes(seed=1), QUICK, 0, checkpoint=checkpoint)


def test_stops_early_and_keeps_the_best() -> None:
    settings = TrainingSettings(latent_dim=3, epochs=30, patience=2, batch=8, learning_rate=0.1)
    losses: list[float] = []
    _, report = train(half_planes(), settings, 0, progress=lambda _, loss, __: losses.append(loss))
    assert report.epochs < 30
    assert losses.index(min(losses)) == report.epochs - 3
    assert report.held_out_loss == min(losses)


def test_takes_no_more_footprints_than_told() -> None:
    settings = TrainingSettings(latent_dim=3, epochs=1, batch=8, most_footprints=40)
    _, report = train(half_planes(100), settings, 0)
    assert (report.trained_on, report.held_out) == (36, 4)


def test_refuses_too_few_distinct_footprints() -> None:
    few = half_planes(19)
    repeated = Footprints(np.repeat(few.cells, 10, axis=0), LABELS, GEOMETRY)
    with pytest.raises(InputError, match=r"1\d distinct footprints to train on; allowed is at least 20"):
        train(repeated, QUICK, 0)


def test_names_the_epoch_that_diverged() -> None:
    settings = TrainingSettings(latent_dim=3, epochs=3, batch=8, learning_rate=1e30)
    with pytest.raises(OcularError, match=r"held-out loss is (nan|inf) after epoch 1; allowed are finite"):
        train(half_planes(), settings, 0)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        *(("epochs", 0), ("batch", 0), ("patience", 0), ("latent_dim", 0), ("most_footprints", 19)),
        *(("learning_rate", 0.0), ("learning_rate", float("nan")), ("warm_up", 1.0)),
    ],
)
def test_refuses_settings(setting: str, value: float) -> None:
    with pytest.raises(InputError, match=rf"{setting} is {value}; allowed"):
        TrainingSettings(**{setting: value})
