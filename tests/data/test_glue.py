import pytest

from jaxemb.data import sources
from jaxemb.data.glue import read_glue
from jaxemb.errors import InputError

# A header and a line of each official file, as GLUE has them.
FILES = {
    "cola": ("", "gj04\t0\t*\tThey drank the pub."),
    "sst-2": ("sentence\tlabel\n", 'a "fine" film\t1'),
    "mrpc": ("Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n", "1\t7\t8\tA b.\tB a."),
    "sts-b": (
        "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\t"
        "sentence2\tscore\n",
        "0\tnews\tf\t2012\t1\tnone\tnone\tA.\tB.\t3.75",
    ),
    "qqp": (
        "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n",
        "1\t2\t3\tA?\tB?\t0",
    ),
    "qnli": ("index\tquestion\tsentence\tlabel\n", "0\tA?\tB.\tnot_entailment"),
    "rte": ("index\tsentence1\tsentence2\tlabel\n", "0\tA.\tB.\tentailment"),
}
WANTED = {
    "cola": ("They drank the pub.", None, 0),
    "sst-2": ('a "fine" film', None, 1),
    "mrpc": ("A b.", "B a.", 1),
    "sts-b": ("A.", "B.", 3.75),
    "qqp": ("A?", "B?", 0),
    "qnli": ("A?", "B.", 1),
    "rte": ("A.", "B.", 0),
}


@pytest.mark.parametrize("task", FILES)
def test_official_files(task, tmp_path):
    path = tmp_path / "dev.tsv"
    path.write_text("".join(FILES[task]) + "\n")
    assert read_glue(task, path) == [WANTED[task]]


def test_rte_as_a_csv_whose_commas_are_quoted(tmp_path):
    path = tmp_path / "dev.csv"
    path.write_text('premise,hypothesis,label\n"A, b.",C.,not_entailment\n')
    assert read_glue("rte", path) == [("A, b.", "C.", 1)]
    path.write_text('premise,hypothesis,label\nA,"b\n')
    with pytest.raises(InputError, match="not valid CSV"):
        read_glue("rte", path)


@pytest.mark.parametrize(
    ("task", "text", "problem"),
    [
        ("rte", FILES["rte"][0] + "0\tA\tB\tmaybe\n", ":2: expected a label of entail"),
        ("sts-b", "".join(FILES["sts-b"]).replace("3.75", "7"), ":2: expected a score"),
        ("sst-2", FILES["sst-2"][0], "expected examples of sst-2, found none"),
        ("wnli", "a\tb\n", "no task 'wnli' of GLUE; there are cola"),
    ],
)
def test_bad_files_are_named(task, text, problem, tmp_path):
    path = tmp_path / "dev.tsv"
    path.write_text(text)
    with pytest.raises(InputError, match=problem):
        read_glue(task, path)


@pytest.mark.data
def test_the_whole_of_rte():
    found = sources.locate("rte")
    if found is None:
        pytest.skip(f"needs {sources.find('rte').parts['train'].local[0]}")
    rows = {split: read_glue("rte", place) for split, place in found.parts.items()}
    assert {s: len(r) for s, r in rows.items()} == {"train": 2490, "validation": 277}
    assert sum(r.label for r in rows["validation"]) == 131  # GLUE's: 146 are entailed
