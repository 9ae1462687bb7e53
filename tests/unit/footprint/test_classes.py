import pytest

from ocular.errors import InputError
from ocular.footprint import ClassTable, load_classes

LABELS = ("OCCUPIED", "UNKNOWN", "ROAD")


def test_a_table_from_a_file_names_the_label_of_every_class(tmp_path):
    path = tmp_path / "classes.toml"
    path.write_text('tree = "OCCUPIED"\ntarmac = "ROAD"\n')
    table = load_classes(path, LABELS)
    assert table.numbers(("tarmac", "tree", "tarmac")).tolist() == [2, 0, 2]


def test_a_class_that_the_table_lacks_is_an_error_or_unknown():
    with pytest.raises(InputError, match="the class 'lake' is not in the table; allowed are tree"):
        ClassTable({"tree": "OCCUPIED"}, LABELS).numbers(("lake",))
    assert ClassTable({"tree": "OCCUPIED"}, LABELS, missing="unknown").numbers(("lake",)).tolist() == [1]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('tree = "WOOD"', "the label of the class 'tree' is 'WOOD'; allowed are 'OCCUPIED'"),
        ("tree = 3", "the label of the class 'tree' is 3"),
        ("tree", "classes.toml is not a TOML file"),
    ],
)
def test_bad_tables_are_refused(tmp_path, text, complaint):
    path = tmp_path / "classes.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=complaint):
        load_classes(path, LABELS)


def test_a_missing_file_and_a_bad_choice_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"there is no class table nowhere\.toml"):
        load_classes(tmp_path / "nowhere.toml", LABELS)
    with pytest.raises(InputError, match="missing is 'ignore'"):
        ClassTable({}, LABELS, missing="ignore")
