"""Every public function, given what it was not made for: a documented error, or an answer of numbers."""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.support.hostile import Call, instead_of, numbers_of, spoilt
from tests.support.public_api import ROOMS, Kit

import ocular
from ocular.errors import CalibrationWarning, OcularError

NO_FUNCTIONS = {
    *("METHODS", "Answer", "Calibrator", "GaussianModel", "Verdict"),
    *("CalibrationWarning", "DamagedFileError", "InputError", "OcularError"),
}
EXAMPLES = 5  # of each function, besides a sweep
SHARE = 5  # of the sweep over every kind of damage to each argument in turn; all of it takes minutes


@pytest.fixture(scope="module")
def kit(tmp_path_factory):
    return Kit(tmp_path_factory.mktemp("kit"))


def holds(name: str, call: Call, arguments: dict[str, object], spoilt: str = "") -> None:
    """An answer without NaN, or a documented error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", CalibrationWarning)
        try:
            answer = call.function(**arguments)
            assert call.nan or not any(np.isnan(numbers).any() for numbers in numbers_of(answer))
        except OcularError:
            assert spoilt, "these arguments are right"
        except BaseException as error:
            error.add_note(f"{name} with {spoilt} = {arguments.get(spoilt)!r}")
            raise


def draw(name: str, call: Call) -> None:
    """A few arguments of hypothesis's choice."""

    @settings(max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(drawn=st.data())
    def tries(drawn):
        argument = drawn.draw(st.sampled_from(sorted(call.arguments)))
        value = drawn.draw(spoilt(call.arguments[argument]))
        assume(call.tries(value))
        holds(name, call, {**call.arguments, argument: value}, argument)

    tries()


@pytest.mark.filterwarnings("ignore::ocular.errors.CalibrationWarning")  # of a cell with few points
@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.__name__)
def test_only_documented_errors_come_out(room, kit, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where files go whose names are spoilt
    for name, call in room(kit).items():
        holds(name, call, call.arguments)
        draw(name, call)
        for argument, value in call.arguments.items():
            for k, each in enumerate(instead_of(value)):
                if k % SHARE == len(name) % SHARE and call.tries(each):
                    holds(name, call, {**call.arguments, argument: each}, argument)


@pytest.mark.filterwarnings("ignore::ocular.errors.CalibrationWarning")
def test_every_public_name_is_tried(tmp_path):
    kit = Kit(tmp_path)
    tried = {name.partition(".")[0] for room in ROOMS for name in room(kit)}
    assert set(ocular.__all__) - NO_FUNCTIONS <= tried
