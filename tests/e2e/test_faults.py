"""kill -9, full and read-only disks, two processes on one output: a few of each; `make stress` does many."""

from pathlib import Path

import numpy as np
import pytest
from tests.support.results import make_results

from ocular.errors import InputError
from ocular.evaluation.rows import Provenance, RowFile
from ocular.report.video import encode
from ocular.sealed import replacing
from ocular.seeds import stream
from stress import faults
from stress.faults import Undisturbed, at_once, killed, mountable, on_full_disks, pairs, works
from stress.verdicts import same, wrong_files
from stress.victims import Victim, ocular, planning


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("faults")


@pytest.fixture(scope="module")
def made(scratch):
    return works(scratch)


@pytest.fixture(scope="module")
def case(scratch, made):
    """Each work undisturbed, done when it is first asked for."""
    known = {}

    def get(name: str) -> Undisturbed:
        if name not in known:
            known[name] = Undisturbed.of(made[name], scratch / name)
        return known[name]

    return get


@pytest.mark.parametrize("name", ["collect", "train", "calibrate", "coverage", "planning"])
def test_killed_work_leaves_right_files_and_goes_on_to_the_same_bytes(case, name, tmp_path):
    tally = killed(case(name), 3, tmp_path / "killed", stream(0, "kill", name))
    assert (tally.faults, tally.as_said, tally.same_bytes) == (3, 3, 3)


@pytest.fixture
def disks(tmp_path):
    if not mountable(tmp_path):
        pytest.skip("small disks are mounted by root alone")
    return tmp_path


@pytest.mark.parametrize("name", ["collect", "calibrate", "planning"])
def test_a_full_disk_is_one_clear_line_and_nothing_is_lost(case, name, disks):
    tally = on_full_disks(case(name), 3, disks / "full", stream(0, "full", name))
    assert (tally.faults, tally.as_said, tally.same_bytes) == (3, 3, 3)


@pytest.mark.parametrize("name", ["collect", "planning"])
def test_a_disk_that_cannot_be_written_to_is_one_clear_line(case, name, disks):
    (figure,) = faults.told_that_nothing_can_be_written(name, case(name), disks / "read-only")
    assert figure.holds


def test_a_video_on_a_full_disk_is_none_instead_of_a_short_one(disks):
    pictures = np.random.default_rng(0).integers(0, 256, (50, 120, 160, 3), np.uint8)
    path = disks / "small" / "drive.mp4"
    with faults.small_disk(path.parent, 32 * faults.PAGE):
        with (
            pytest.raises(InputError, match=r"cannot write .*drive\.mp4: .*No space left on device"),
            replacing(path) as file,
        ):
            encode(Path(file.name), iter(pictures), lambda _: None)
        assert not list(path.parent.iterdir())


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize("name", ["collect", "calibrate", "planning"])
def test_of_two_processes_on_one_output_both_end_or_one_is_refused(scratch, name, tmp_path):
    tally = at_once(*pairs(scratch)[name], 2, tmp_path / "pair", stream(0, "pair", name))
    assert (tally.faults, tally.as_said, tally.same_bytes) == (2, 2, 2)


def test_what_is_wrong_is_seen(case, tmp_path):
    """The verdicts above can fail."""
    final = case("planning").folder
    victim = Victim(planning, tmp_path / "drives")
    assert victim.end() == 0
    assert same(tmp_path / "drives", final)
    rows = tmp_path / "drives" / "results" / "planar" / "planning.csv"
    rows.write_text(rows.read_text().replace("timeout", "success"))
    assert not same(tmp_path / "drives", final)
    assert wrong_files(tmp_path / "drives", final) == ["results/planar/planning.csv"]
    rows.write_text("".join(rows.read_text().replace("success", "timeout").splitlines(keepends=True)[:-1]))
    assert not wrong_files(tmp_path / "drives", final)  # a row is missing still
    assert not same(tmp_path / "drives", final)
    (tmp_path / "drives" / "more").write_text("x")
    assert wrong_files(tmp_path / "drives", final) == ["more"]


def test_rows_never_lack_their_origin(tmp_path, monkeypatch):
    """Killed just before its rows are written, a run has left what made them; the next one refuses others."""

    def die(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(RowFile, "add", die)
    with pytest.raises(KeyboardInterrupt):
        planning(tmp_path)
    provenance = Provenance(tmp_path / "results" / "planar" / "planning.provenance.json", {"samples": 1})
    assert provenance.read()["runs"][0]["rows"] == ["S nocp: 1 episodes"]
    with pytest.raises(InputError, match="made with another configuration"):
        provenance.check()


@pytest.mark.usefixtures("made")
def test_outputs_of_the_wrong_kind_are_refused_before_the_work(scratch, tmp_path):
    store = str(scratch / "logs" / "store")
    shown = str(make_results(scratch / "shown"))
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    fit = ("calibrate", store, "--model", "planar", "--method", "lucca", "-o")
    rows = ("reproduce", "planar", "--quick", "--output", "file", "--work", "work")
    for arguments, message in (
        ((*fit, "folder"), "cannot write folder: it is not a regular file"),
        (
            (*fit, "file/robot.ocular"),
            "-o is file/robot.ocular; allowed is a file in a directory",
        ),
        (rows, "cannot make the folder file/planar: Not a directory"),
        (("collect", "--map", "S", "--store", "file"), "file holds no zarr.json"),
        (
            ("report", "--results", shown, "--output", "file/report.html"),
            "cannot make the folder file: File exists",
        ),
    ):
        victim = Victim(ocular(*arguments), tmp_path)
        assert victim.end() == 1
        (said,) = victim.said.splitlines()
        assert said.startswith("ocular: ")
        assert message in said
    assert (tmp_path / "file").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]
