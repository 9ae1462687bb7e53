"""Rows: resumable, sorted, whole; provenance that refuses to mix configurations."""

import json
import threading

import pytest

from ocular.errors import DamagedFileError, InputError
from ocular.evaluation.rows import Provenance, RowFile


def rows_in(tmp_path):
    return RowFile(tmp_path / "deep" / "rows.csv", ("map", "episode"), ("map", "episode", "value"))


def row(map_name, episode, value):
    return {"map": map_name, "episode": episode, "value": value}


def test_any_order_of_adding_gives_the_same_bytes(tmp_path):
    one, other = rows_in(tmp_path / "one"), rows_in(tmp_path / "other")
    one.add([row("S", 10, 0.123456789), row("S", 2, 1.0), row("H", 1, 3)])
    for r in (row("H", 1, 3), row("S", 2, 1.0), row("S", 10, 0.123456789)):
        other.add([r])
    assert one.path.read_bytes() == other.path.read_bytes()
    assert one.path.read_text() == "map,episode,value\nH,1,3\nS,2,1\nS,10,0.123457\n"


def test_adding_again_replaces(tmp_path):
    rows = rows_in(tmp_path)
    rows.add([row("S", 1, 1)])
    rows.add([row("S", 1, 2)])
    assert rows.read() == [{"map": "S", "episode": "1", "value": "2"}]
    assert rows.keys() == {("S", "1")}


def test_rows_that_are_added_at_the_same_time_are_all_kept(tmp_path):
    rows = rows_in(tmp_path)

    def add(map_name):
        for episode in range(20):
            rows.add([row(map_name, episode, 0)])

    threads = [threading.Thread(target=add, args=(name,)) for name in "SLHU"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert rows.keys() == {(name, str(episode)) for name in "SLHU" for episode in range(20)}
    assert [path.name for path in rows.path.parent.iterdir()] == ["rows.csv"]


def test_nothing_new_needs_no_writing(tmp_path, monkeypatch):
    rows = rows_in(tmp_path)
    rows.add([row("S", 1, 1)])
    monkeypatch.setattr("ocular.evaluation.rows.sole_writer", None)
    rows.add([row("S", 1, 1)])


def test_wrong_columns_are_refused(tmp_path):
    rows = rows_in(tmp_path)
    with pytest.raises(InputError, match="a row has the columns"):
        rows.add([{"map": "S", "episode": 1}])
    rows.add([row("S", 1, 1)])
    other = RowFile(rows.path, ("map",), ("map", "answer"))
    with pytest.raises(DamagedFileError, match=r"has the columns .*allowed are \['map', 'answer'\]"):
        other.read()
    rows.path.write_text("map,episode,value\nS,1\n")
    with pytest.raises(DamagedFileError, match="line 2"):
        rows.read()


def test_provenance_records_every_run_and_refuses_another_configuration(tmp_path):
    path = tmp_path / "rows.provenance.json"
    provenance = Provenance(path, {"alpha": 0.1, "grid": (1, 2)})
    provenance.check()
    for maps in (["S"], ["H"]):
        with provenance.start(workers=2) as run:
            run.record([], peak_gib=0.4)
            run.record(maps, peak_gib=0.5)  # a run that goes on replaces its own entry
    record = json.loads(path.read_text())
    assert [run["rows"] for run in record["runs"]] == [["S"], ["H"]]
    assert {"commit", "versions", "cores", "wall_seconds"} <= record["runs"][0].keys()
    with pytest.raises(InputError, match=r"alpha was 0\.1, now 0\.2"):
        Provenance(path, {"alpha": 0.2, "grid": (1, 2)}).check()
    path.write_text("{}")
    with pytest.raises(DamagedFileError, match="lacks config"):
        provenance.check()
    path.write_text("{")
    with pytest.raises(DamagedFileError, match="not JSON"):
        provenance.check()


def test_a_second_run_of_the_same_rows_is_refused(tmp_path):
    provenance = Provenance(tmp_path / "deep" / "rows.provenance.json", {})
    with provenance.start(workers=1) as run:
        with (
            pytest.raises(InputError, match=r"another process works on .*rows\.provenance\.json"),
            provenance.start(workers=1),
        ):
            pass
        run.record(["S"], peak_gib=0.1)
    with provenance.start(workers=1) as run:
        run.record(["H"], peak_gib=0.1)
    assert [run["rows"] for run in provenance.read()["runs"]] == [["S"], ["H"]]


def test_what_is_no_text_is_damage(tmp_path):
    rows = rows_in(tmp_path)
    rows.path.parent.mkdir(parents=True)
    rows.path.write_bytes(b"map,episode,value\n\xff\xfe,1,2\n")
    with pytest.raises(DamagedFileError, match="is not a CSV file"):
        rows.read()


@pytest.mark.parametrize(
    "text", ['{"config": {}, "runs": 3}', '{"config": [], "runs": []}', "[" * 9000, '{"config": {"a": NaN}}']
)
def test_provenance_that_is_none_is_damage(tmp_path, text):
    (tmp_path / "p.json").write_text(text)
    with pytest.raises(DamagedFileError, match=r"p\.json"):
        Provenance(tmp_path / "p.json", {}).check()
