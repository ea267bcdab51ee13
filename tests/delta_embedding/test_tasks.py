"""What the experiment reads: folds, files, what is in training and what in test."""

import dataclasses
import json

import numpy as np
import pytest

from experiments.delta_embedding import config as presets
from experiments.delta_embedding import data, task
from jaxemb.data import batching, sources
from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError
from tests.delta_embedding.shared import WORDS, smoke


def test_folds_part_the_examples():
    tests = [set(task.fold(103, 10, i)[2]) for i in range(10)]
    assert set.union(*tests) == set(range(103))
    assert sum(map(len, tests)) == 103
    for index in range(10):
        train_rows, dev, test = map(set, task.fold(103, 10, index))
        assert train_rows | dev | test == set(range(103))
        assert len(train_rows) + len(dev) + len(test) == 103
        assert len(dev) == (103 - len(test)) // 10


def test_folds_keep_groups_together():
    groups = np.random.default_rng(0).integers(0, 40, 103)
    tests = []
    for index in range(5):
        parts = task.fold(103, 5, index, groups)
        assert sorted(np.concatenate(parts)) == list(range(103))
        names = [set(groups[part]) for part in parts]
        assert not names[0] & names[1] | names[0] & names[2] | names[1] & names[2]
        tests += parts[2].tolist()
    assert sorted(tests) == list(range(103))


def test_words_without_a_vector_are_named_by_their_share():
    texts = batching.Ragged.of([[2, 2, 3], [4, 2, 5, 3, 4]])
    examples = task.Task(WORDS, {"tokens": texts}, ())
    known = WordVectors(("w3", "w5"), np.ones((2, 2), np.float32))
    assert examples.tokens_without_vector(known) == 5 / 8
    assert examples.commonest_without_vector(known) == {"w2": 3 / 8, "w4": 2 / 8}
    assert list(examples.commonest_without_vector(known, 1)) == ["w2"]


@pytest.mark.data
def test_kmr_has_kaggles_phrases_split_by_sentence():
    if sources.locate("sst-trees") is None:
        pytest.skip("needs sst_trees/{train,dev,test}.txt in $JAXEMB_DATA")
    loaded = data.load(presets.KMR)
    train_rows, dev, test = loaded.splits
    tokens = loaded.columns["tokens"]
    assert abs(len(train_rows) - 156_060) / 156_060 < 0.01  # Kaggle's training phrases
    texts = {}
    for name, rows in (("train", train_rows), ("dev", dev), ("test", test)):
        offsets = tokens.offsets
        texts[name] = {
            tokens.values[offsets[r] : offsets[r + 1]].tobytes() for r in rows
        }
        assert len(texts[name]) == len(rows)
    assert not texts["train"] & (texts["dev"] | texts["test"])
    assert set(np.unique(loaded.columns["labels"])) == set(range(5))


@pytest.mark.parametrize(
    ("preset", "name", "file"),
    [
        ("bidaf-squad", "squad", "squad/train-v1.1.json"),
        ("esim-multinli", "multinli", "multinli_1.0/multinli_1.0_train.jsonl"),
    ],
)
def test_without_the_official_data(tmp_path, monkeypatch, preset, name, file):
    monkeypatch.setenv("JAXEMB_DATA", str(tmp_path))
    monkeypatch.setenv("JAXEMB_CACHE", str(tmp_path / "cache"))

    def refuse(address, timeout):
        raise OSError(101, "Network is unreachable")

    monkeypatch.setattr("socket.create_connection", refuse)
    for variable in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    assert name in presets.PRESETS[preset][1].data_sets
    with pytest.raises(InputError, match=rf"^{name} \(.* is not on this .*{file}") as e:
        smoke(preset, tmp_path / "run")
    assert "\n" not in str(e.value)


def official(folder, name, *rows):
    folder.mkdir(exist_ok=True)
    lines = (json.dumps(dict(row)) for row in rows)
    (folder / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in lines))


def test_multinli_is_trained_on_one_genre_and_tested_on_four_sets(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("JAXEMB_DATA", str(tmp_path))
    monkeypatch.setenv("JAXEMB_CACHE", str(tmp_path / "cache"))

    def pair(premise, genre, label="neutral"):
        return {
            "sentence1": premise,
            "sentence2": "He ran.",
            "gold_label": label,
            "genre": genre,
        }

    train_pairs = [pair(f"p{i // 3}", "fiction") for i in range(60)]
    train_pairs += [pair("other", "travel")] * 5
    folder = tmp_path / "multinli_1.0"
    official(folder, "multinli_1.0_train", *train_pairs)
    matched = [pair("m", "fiction"), pair("n", "slate"), pair("o", "slate", "-")]
    official(folder, "multinli_1.0_dev_matched", *matched)
    official(folder, "multinli_1.0_dev_mismatched", pair("q", "verbatim"))
    for split in ("train", "dev", "test"):
        official(tmp_path / "snli_1.0", f"snli_1.0_{split}", pair("s", None))
    config = presets.MULTINLI
    assert config.texts == ("multinli", "snli")
    loaded = data.load(config)
    split = loaded.split(config, 0)
    sizes = [len(part["labels"]) for part in (split.train, split.dev, split.test)]
    assert sizes == [54, 6, 1]
    premises = [
        {tuple(x) for x in part["premise"].padded(np.arange(n), 1)}
        for part, n in zip((split.train, split.dev), sizes, strict=False)
    ]
    assert not premises[0] & premises[1]
    others = {name: len(columns["labels"]) for name, columns in loaded.others.items()}
    assert others == {"matched": 2, "mismatched": 1, "snli": 1}
    assert loaded.data[0].kind == "subset"  # not as many as the paper's
    assert loaded.notes["unlabelled"] == 1


def squad_file(folder, name, articles):
    """SQuAD 1.1 as its authors write it: (paragraph, [(question, answers)])."""
    made = [
        {
            "title": f"{name} {number}",
            "paragraphs": [
                {
                    "context": context,
                    "qas": [
                        {
                            "id": f"{name}-{number}-{i}",
                            "question": question,
                            "answers": [
                                {"text": a, "answer_start": context.index(a)}
                                for a in answers
                            ],
                        }
                        for i, (question, answers) in enumerate(asked)
                    ],
                }
            ],
        }
        for number, (context, asked) in enumerate(articles)
    ]
    folder.mkdir(exist_ok=True)
    content = {"data": made, "version": "1.1"}
    (folder / f"{name}-v1.1.json").write_text(json.dumps(content))


@pytest.fixture
def official_squad(tmp_path, monkeypatch):
    """Forty questions to train on and two, with several answers, to test on."""
    monkeypatch.setenv("JAXEMB_DATA", str(tmp_path))
    monkeypatch.setenv("JAXEMB_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "squad"
    articles = [
        (
            f"Ann lives in Town{i}. She is {i + 20} years old.",
            [("Where does Ann live?", [f"Town{i}"]), ("How old?", [f"{i + 20}"])],
        )
        for i in range(20)
    ]
    squad_file(folder, "train", articles)
    tested = "Bob's house, built in 1990, is red."
    asked = [
        ("When was it built?", ["1990", "in 1990", "1990"]),
        ("Whose house is it?", ["Bob", "Bob's house"]),
    ]
    squad_file(folder, "dev", [(tested, asked)])
    return folder


def test_squad_from_its_official_files(official_squad):
    loaded = data.load(presets.SQUAD)
    train_rows, dev, test = loaded.splits
    assert [len(rows) for rows in loaded.splits] == [36, 4, 2]
    assert sorted([*train_rows, *dev]) == list(range(40))
    contexts = [
        {loaded.questions[row].source.context for row in rows} for rows in loaded.splits
    ]
    assert [len(of) for of in contexts] == [18, 2, 1]
    assert not contexts[0] & contexts[1]
    asked = [loaded.questions[row].source for row in test]
    assert [q.id for q in asked] == ["dev-0-0", "dev-0-1"]
    assert [[a.text for a in q.answers] for q in asked] == [
        ["1990", "in 1990", "1990"],
        ["Bob", "Bob's house"],
    ]
    for row in range(42):
        question = loaded.questions[row]
        start, end = (int(loaded.columns[name][row]) for name in ("start", "end"))
        span = type(question.spans[0])(start, end)
        assert question.text(span) == question.source.answers[0].text
    assert loaded.columns["number"].tolist() == list(range(42))
    (described,) = loaded.data
    assert (described.name, described.size) == ("squad", 42)
    assert described.kind == "subset"  # of 98,169
    assert loaded.notes["answers_to_test_on"].startswith("2 questions with 5 answers")


def test_whole_squad_is_real_and_a_share_of_it_a_subset(official_squad, monkeypatch):
    whole = dataclasses.replace(sources.DATA_SETS["squad"], rows=42)
    monkeypatch.setattr(sources, "DATA_SETS", {**sources.DATA_SETS, "squad": whole})
    assert data.load(presets.SQUAD).data[0].kind == "real"
    fifth = dataclasses.replace(presets.SQUAD, share=0.2)
    loaded, again = data.load(fifth), data.load(fifth)
    assert (loaded.data[0].kind, loaded.data[0].size) == ("subset", 10)
    assert [len(rows) for rows in loaded.splits] == [6, 2, 2]  # of four paragraphs
    assert loaded.questions == again.questions
    least = data.load(dataclasses.replace(presets.SQUAD, share=0.01))
    assert [len(rows) for rows in least.splits] == [2, 2, 2]


@pytest.mark.data
def test_pairs_of_one_premise_are_in_one_fold():
    if not all(map(sources.locate, ("mnli-dev-matched", "snli-esnli"))):
        pytest.skip("needs mnli_dev_matched and snli_esnli in $JAXEMB_DATA")
    config = presets.ESIM
    loaded = data.load(config)
    assert len(loaded.columns["labels"]) == 9815
    assert len(loaded.others["snli"]["labels"]) == 9824
    premises = loaded.columns["premise"]
    for part in range(config.parts):
        rows = task.fold(9815, config.parts, part, loaded.groups)
        assert abs(len(rows[2]) - 9815 / 5) < 100
        texts = [
            {premises.padded(np.array([r]), 50).tobytes() for r in part}
            for part in rows
        ]
        assert not texts[2] & (texts[0] | texts[1])


@pytest.mark.data
def test_pairs_of_sick_that_are_in_two_parts_are_counted():
    if not sources.locate("sick"):
        pytest.skip("needs sick in $JAXEMB_DATA")
    loaded = data.load(presets.SICK)
    assert [len(rows) for rows in loaded.splits] == [4500, 500, 4927]
    assert loaded.notes["test_pairs_that_are_in_training"] == 49


@pytest.mark.data
def test_no_paragraph_is_trained_on_and_tested():
    if not all(map(sources.locate, ("squad2-half-dev", "xquad"))):
        pytest.skip("needs squad2_half_dev and xquad in $JAXEMB_DATA")
    loaded = data.load(presets.BIDAF)
    assert loaded.notes["answerable_questions"] == 2910
    assert loaded.notes["questions_whose_paragraph_is_in_test"] == 335
    contexts = [
        {loaded.questions[row].source.context for row in rows} for rows in loaded.splits
    ]
    assert [len(rows) for rows in loaded.splits][2] == 1190
    assert not contexts[0] & contexts[1] | contexts[0] & contexts[2]
    assert not contexts[1] & contexts[2]
    for row in loaded.splits[0]:
        question = loaded.questions[row]
        start, end = (int(loaded.columns[name][row]) for name in ("start", "end"))
        text = question.text(type(question.spans[0])(start, end))
        assert text in {answer.text.strip() for answer in question.source.answers}
