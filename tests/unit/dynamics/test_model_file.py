"""A robot described in a text file, and what is said when the description is wrong."""

import numpy as np
import pytest

from ocular.dynamics import (
    LinearGaussian,
    Robot,
    Unicycle,
    differential_drive,
    double_integrator,
    load_model,
    load_robot,
    save_robot,
    unicycle,
)
from ocular.errors import InputError

Q = np.diag([1e-3, 2e-3, 4e-3])
FILES = {
    'kind = "double_integrator"\ndt = 0.05\nfloor = 1e-6': double_integrator(0.05, floor=1e-6),
    'kind = "double_integrator"\ndt = 0.2\nslip = 1.3\nnoise = 0.2': double_integrator(
        0.2, slip=1.3, noise=0.2
    ),
    'kind = "linear"\nA = [[1, 0.1], [0, 1]]\nB = [[0], [0.1]]\nQ = 0.5': LinearGaussian(
        np.array([[1, 0.1], [0, 1]]), np.array([[0], [0.1]]), 0.5 * np.eye(2)
    ),
    'kind = "unicycle"\ndt = 0.5\nQ = [1e-3, 2e-3, 4e-3]\nspeed_gain = 0.9': unicycle(0.5, Q, speed_gain=0.9),
    'kind = "unicycle"\ndt = 1\nQ = 1e-3\nG = [[1], [0], [0.5]]': Unicycle(
        1.0, np.array([[1], [0], [0.5]]), 1e-3 * np.eye(3)
    ),
    'kind = "differential_drive"\ndt = 0.5\nQ = 0\nwheel_radius = 0.3\nbaseline = 1.08\nturn_gain = 0.6': (
        differential_drive(0.5, 0 * Q, wheel_radius=0.3, baseline=1.08, turn_gain=0.6)
    ),
}


def arrays(model):
    return {name: array.tolist() for name, array in model.to_arrays().items()}


@pytest.mark.parametrize("text", FILES)
def test_every_kind_is_read_and_written(text, tmp_path):
    path = tmp_path / "robot.toml"
    path.write_text(text)
    model = load_model(path)
    assert type(model) is type(FILES[text])
    assert arrays(model) == arrays(FILES[text])
    assert load_robot(path).state_cov is None
    cov = np.diag(np.arange(1, model.state_dim + 1) / 3e4)
    save_robot(Robot(model, cov), path)
    again = load_robot(path)
    assert arrays(again.model) == arrays(model)
    assert np.array_equal(again.state_cov, cov)


@pytest.mark.parametrize(
    ("written", "matrix"),
    [
        ("2e-5", 2e-5 * np.eye(2)),
        ("[1, 2]", np.diag([1.0, 2.0])),
        ("[[2, 1], [1, 2]]", np.array([[2.0, 1.0], [1.0, 2.0]])),
    ],
)
def test_the_state_covariance_is_written_in_three_ways(written, matrix, tmp_path):
    path = tmp_path / "robot.toml"
    path.write_text(f'kind = "linear"\nA = [[1, 0], [0, 1]]\nB = [[1], [1]]\nQ = 1\nstate_cov = {written}')
    assert np.array_equal(load_robot(path).state_cov, matrix)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "dt = 0.1",
            "kind is None; allowed are 'double_integrator', 'linear', 'unicycle', 'differential_drive'",
        ),
        ('kind = "bicycle"', "kind is 'bicycle'; allowed are 'double_integrator', 'linear'"),
        ('kind = "unicycle"\ndt = 0.1', "the kind 'unicycle' lacks Q; it takes dt, Q, speed_gain"),
        (
            'kind = "unicycle"\ndt = 0.1\nQ = 1\nslip = 2',
            "parameter of the kind 'unicycle' is 'slip'; allowed are 'dt'",
        ),
        ('kind = "unicycle"\ndt = "fast"\nQ = 1', "dt is 'fast'; allowed are numbers"),
        ('kind = "unicycle"\ndt = [1]\nQ = 1', r"dt has shape \(1,\); allowed is \(\)"),
        ('kind = "unicycle"\ndt = nan\nQ = 1', "dt is nan; allowed is a positive number"),
        ('kind = "unicycle"\ndt = 1\nQ = true', "Q is True; allowed are numbers"),
        ('kind = "unicycle"\ndt = 1\nQ = [1, 2]', r"the diagonal of Q has shape \(2,\); allowed is \(3\)"),
        ('kind = "unicycle"\ndt = 1\nQ = 1\nG = [[1], [0]]', r"G has shape \(2, 1\); allowed is \(3, any\)"),
        (
            'kind = "unicycle"\ndt = 1\nQ = 1\nturn_gain = 2\nG = [[1], [0], [1]]',
            "G is given, and gains too; allowed is either",
        ),
        (
            'kind = "linear"\nA = [[1, 2], [3]]\nB = [[1]]\nQ = 1',
            r"A is \[\[1, 2\], \[3\]\]; allowed are numbers, and lists",
        ),
        ('kind = "linear"\nA = 1\nB = [[1]]\nQ = 1', r"A has shape \(\); allowed is \(any, any\)"),
        ('kind = "double_integrator"\ndt = -1', "dt=-1.0, slip=1.0"),
        ('kind = "double_integrator"\ndt = 1\nstate_cov = -1', "state_cov is not positive semidefinite"),
        ("kind = ", "is not a TOML file"),
    ],
)
def test_what_is_wrong_is_named_with_the_file(text, message, tmp_path):
    path = tmp_path / "robot.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        load_model(path)
    assert str(path) in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"cannot read .*robot\.toml: No such file"):
        load_model(tmp_path / "robot.toml")


@pytest.mark.parametrize("text", ['kind = ["linear"]', "kind = {}", "kind = " + "[" * 9000])
def test_a_kind_of_another_type_is_refused_too(text, tmp_path):
    (tmp_path / "robot.toml").write_text(text)
    with pytest.raises(InputError, match=r"robot\.toml"):
        load_model(tmp_path / "robot.toml")
