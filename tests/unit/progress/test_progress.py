"""Bars are for people at a terminal: whole, one above the other, and never in the way of what is printed."""

import io
import subprocess
import sys

import joblib
import pytest
from rich.console import Console

from ocular import progress as module
from ocular.progress import progress


@pytest.fixture
def terminal(monkeypatch):
    """What a person would see on stderr."""
    written = io.StringIO()
    monkeypatch.setattr(
        module, "Console", lambda stderr: Console(file=written, force_terminal=True, width=100)
    )
    return written


def test_a_terminal_shows_what_how_far_and_the_last_word(terminal):
    with progress("calibrating", 4) as advance:
        advance("H [ocular]")  # brackets are no markup
        advance("U lucca", 3)
    shown = terminal.getvalue()
    assert "calibrating" in shown
    assert "4/4" in shown
    assert "U lucca" in shown


def test_bars_within_bars_share_one_display_and_go_when_done(terminal):
    with progress("outer", 2) as advance:
        with progress("inner", 5) as inside:
            inside("epoch 1")
        advance("first")
    last = terminal.getvalue().rsplit("\r", 1)[-1]
    assert "inner" in terminal.getvalue()
    assert "inner" not in last
    with pytest.raises(ZeroDivisionError), progress("fails", 1), progress("within", 1):
        raise ZeroDivisionError
    assert module._running == []


def test_news_of_others_is_asked_for_while_waiting(terminal):
    with progress("calibrating", 1, news=lambda: "epoch 3, held-out loss 0.0421"):
        pass
    assert "epoch 3, held-out loss 0.0421" in terminal.getvalue()


def test_pipes_and_workers_are_quiet(capfd):
    with progress("calibrating", 1, news=lambda: pytest.fail("nobody asks")) as advance:
        advance("done")
    joblib.Parallel(n_jobs=2)(joblib.delayed(_work)() for _ in range(2))
    assert capfd.readouterr() == ("", "")


def _work() -> None:
    # Also where a worker's stderr is the terminal.
    module.Console = lambda stderr: Console(stderr=True, force_terminal=True)
    with progress("in a worker", 1) as advance:
        advance("done")


def test_what_is_printed_to_a_file_arrives_there():
    script = (
        "from ocular import progress as p; from rich.console import Console\n"
        "p.Console = lambda stderr: Console(stderr=True, force_terminal=True)\n"
        "with p.progress('driving', 1): print('{\"row\": 1}')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == '{"row": 1}\n'
    assert "driving" in done.stderr
