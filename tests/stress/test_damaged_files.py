"""The long test of damaged and forged files, in short."""

from stress.artefact_kinds import KINDS
from stress.artefacts import FIGURES, edit_and_read


def test_damaged_and_forged_files_are_refused_or_say_what_was_edited(tmp_path):
    trials = list(edit_and_read(tmp_path, 120, seed=7))
    assert {trial.kind for trial in trials} == set(KINDS)
    bad = {verdict for verdicts in FIGURES.values() for verdict in verdicts}
    assert [trial for trial in trials if trial.verdict in bad] == []
    assert sum(trial.verdict == "refused" for trial in trials) > 60
