import io
import json
import os
import subprocess
import sys
import tarfile
import warnings
import zipfile
from pathlib import Path

import pytest

with warnings.catch_warnings():
    # TFDS and what it imports are not ours to mend.
    warnings.simplefilter("ignore")
    import tensorflow_datasets as tfds

from jaxemb.data import builders, glue, nli, sources, squad, text, tokenize, trees
from jaxemb.errors import InputError

ROOT = Path(__file__).parents[2]
SENTENCES = [(0, "it's dull – so"), (1, "fine"), (1, ""), (0, "naïve , no ?")]
TREES = ["(3 (2 It) (4 (3 works) (2 .)))", "(1 (1 dull) (2 .))"]


@pytest.fixture
def local(tmp_path, monkeypatch):
    """A data folder with a few small corpora in it, and an empty cache."""
    monkeypatch.setenv("JAXEMB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("JAXEMB_DATA", str(tmp_path / "data"))
    folder = tmp_path / "data"
    (folder / "sentences").mkdir(parents=True)
    (folder / "sst_trees").mkdir()
    kim = "".join(f"{label} {line} \n" for label, line in SENTENCES)
    (folder / "sentences" / "rt-polarity.all").write_bytes(kim.encode("cp1252"))
    for split in ("train", "test"):
        questions = f"5 How far ?\n4 Where in {split} ?\n"
        (folder / "sentences" / f"TREC.{split}.all").write_text(questions)
    for split in ("train", "dev", "test"):
        (folder / "sst_trees" / f"{split}.txt").write_text("\n".join(TREES))
    return folder


def test_rows_are_those_of_the_reader_in_its_order(local):
    rows = builders.read("rt-polarity")
    assert len(rows) == len(SENTENCES)
    expected = [(line, label) for label, line in SENTENCES]
    assert [(row["text"].decode(), row["label"]) for row in rows] == expected
    assert [int(row["group"]) for row in rows] == [0, 1, 2, 3]
    assert rows[3]["text"].decode() == "naïve , no ?"  # by number
    path = local / "sentences" / "rt-polarity.all"
    assert list(builders.labelled(rows)) == text.read_rt_polarity(path)


def test_splits(local):
    assert len(builders.read("trec", "train")) == 2
    assert builders.read("trec", "test")[1]["text"] == b"Where in test ?"
    assert len(builders.read("trec", "all")) == 4
    assert len(builders.read("trec", "train[:50%]")) == 1
    with pytest.raises(InputError, match="trec has no split 'dev'; it has train, test"):
        builders.read("trec", "dev")
    names = builders.prepare("trec").info.features["label"].names
    assert names[5] == "NUM" and names[4] == "LOC"


def test_phrases_of_a_sentence_share_their_group(local):
    rows = builders.read("sst-phrases", "dev")
    expected = [
        (" ".join(phrase.tokens), phrase.label, group)
        for group, tree in enumerate(map(trees.parse, TREES))
        for phrase in trees.phrases(tree)
    ]
    read = [(row["text"].decode(), row["label"], int(row["group"])) for row in rows]
    assert read == expected and len(read) == 8
    cut = list(builders.labelled(rows, tokenize.whitespace))
    assert cut[0].tokens == ("It", "works", ".")


def test_prepared_once_and_again_when_the_file_changes(local):
    first = builders.prepare("rt-polarity").data_path
    stamp = (first / "dataset_info.json").stat().mtime
    assert builders.prepare("rt-polarity").data_path == first
    assert (first / "dataset_info.json").stat().mtime == stamp
    (local / "sentences" / "rt-polarity.all").write_text("1 changed\n")
    assert [row["text"] for row in builders.read("rt-polarity")] == [b"changed"]


def test_a_bad_file_is_named_and_leaves_nothing(local, tmp_path):
    path = local / "sentences" / "rt-polarity.all"
    path.write_text("1 fine\nno label\n")
    with pytest.raises(InputError, match=r"rt-polarity\.all:2: expected a label"):
        builders.read("rt-polarity")
    left = [p for p in (tmp_path / "cache").rglob("*array_record*")]
    assert not left


def test_without_the_files(local):
    with pytest.raises(InputError, match="subj .* is not on this machine"):
        builders.read("subj")
    with pytest.raises(InputError, match="no data set 'nosuch' to prepare"):
        builders.read("nosuch")


def test_sentence_pairs_are_those_of_the_readers(local):
    (local / "sick").mkdir()
    rows = "A dog runs\tIt moves\t4.5\tENTAILMENT\n"
    for name in ("train", "trial", "test_annotated"):
        header = (
            "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"
        )
        (local / "sick" / f"SICK_{name}.txt").write_text(f"{header}\n1\t{rows}")
    found = builders.sentence_pairs(builders.read("sick", "test"))
    assert found == nli.read_nli(local / "sick" / "SICK_test_annotated.txt")
    (local / "snli_esnli").mkdir()
    for split in ("dev", "test"):
        sides = {"s1": "a .\nb\n", "s2": "c\nd\n", "labels": "-\ncontradiction\n"}
        for name, content in sides.items():
            (local / "snli_esnli" / f"{name}.{split}").write_text(content)
    found = builders.sentence_pairs(builders.read("snli-esnli", "validation"))
    assert found.pairs == (nli.SentencePair("b", "d", 2, None),)
    # TFDS's own SNLI marks what has no label by -1, and has no genre.
    row = {"premise": b"a", "hypothesis": b"b"}
    found = builders.sentence_pairs([{**row, "label": -1}, {**row, "label": 1}])
    assert found == nli.SentencePairs((nli.SentencePair("a", "b", 1),), 1)


def test_glue_is_that_of_the_reader(local):
    (local / "RTE").mkdir()
    for split in ("train", "dev"):
        text = f"index\tsentence1\tsentence2\tlabel\n0\tA {split}\tB\tentailment\n"
        (local / "RTE" / f"{split}.tsv").write_text(text)
    [row] = builders.read("glue-rte", "validation")
    [wanted] = glue.read_glue("rte", local / "RTE" / "dev.tsv")
    found = row["first"].decode(), row["second"].decode(), float(row["label"])
    assert found == wanted == ("A dev", "B", 0)


def test_multinli_keeps_its_genres(local):
    folder = local / "multinli_1.0"
    folder.mkdir()
    for name in ("train", "dev_matched", "dev_mismatched"):
        row = {"sentence1": "a", "sentence2": name, "gold_label": "neutral"}
        line = json.dumps({**row, "genre": "fiction"})
        (folder / f"multinli_1.0_{name}.jsonl").write_text(line + "\n")
    found = sources.locate("multinli")
    assert found is not None and found.kind == "real"  # its bytes are not known
    rows = builders.read("multinli", "validation_mismatched")
    assert builders.sentence_pairs(rows).of_genre("fiction").pairs == (
        nli.SentencePair("a", "dev_mismatched", 1, "fiction"),
    )


def test_questions_are_those_of_the_reader(local):
    (local / "squad2_half_dev").mkdir()
    path = local / "squad2_half_dev" / "dev-v2.0.json"
    entries = [
        {"id": "1", "question": "Wer?", "answers": [{"text": "é", "answer_start": 2}]},
        {"id": "2", "question": "Was?", "answers": [], "is_impossible": True},
    ]
    article = {"title": "T", "paragraphs": [{"context": "d’é", "qas": entries}]}
    path.write_text(json.dumps({"data": [article]}))
    found = builders.questions(builders.read("squad2-half-dev"))
    assert found == squad.read_squad(path)
    assert found[0].answers == (squad.Answer("é", 2),) and found[1].answers == ()


def imdb_archive(path):
    with tarfile.open(path, "w:gz") as archive:
        for name in (
            "train/pos/0_9",
            "train/neg/1_2",
            "test/pos/0_8",
            "train/unsup/0_0",
        ):
            content = f"a review of {name}".encode()
            member = tarfile.TarInfo(f"aclImdb/{name}.txt")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def test_data_sets_of_tfds_itself(local, tmp_path, monkeypatch):
    """TFDS's own IMDB from an archive in its authors' layout, without the network."""
    archive = imdb_archive(tmp_path / "aclImdb_v1.tar.gz")
    download = tfds.download.DownloadManager

    def from_here(self, urls):
        del self, urls
        return archive

    monkeypatch.setattr(download, "download", from_here)
    monkeypatch.setattr(builders, "_require_network", lambda builder: None)
    rows = builders.read("imdb_reviews", "train")
    texts = {row["text"]: int(row["label"]) for row in rows}
    assert texts == {b"a review of train/pos/0_9": 1, b"a review of train/neg/1_2": 0}
    found = sources.locate("imdb")
    assert found is not None and found.source == "tfds imdb_reviews"
    assert not found.parts and found.size > 0 and len(found.sha256) == 64
    assert len(builders.read("imdb", "test")) == 1  # found, so not fetched from a wheel


def test_glue_of_tfds_is_unpacked_without_tensorflow(local, tmp_path, monkeypatch):
    archive = tmp_path / "SST-2.zip"
    with zipfile.ZipFile(archive, "w") as members:
        for split in ("train", "dev"):
            rows = f"sentence\tlabel\nit 's fine in {split} \t1\n"
            members.writestr(f"SST-2/{split}.tsv", rows)
        members.writestr("SST-2/test.tsv", "index\tsentence\n0\tunknown\n")

    def from_here(self, url):
        del url
        return self.extract(archive)

    download = tfds.download.DownloadManager
    monkeypatch.setattr(download, "download_and_extract", from_here)
    monkeypatch.setattr(builders, "_require_network", lambda builder: None)
    found = sources.get("sst-2-glue")
    assert (found.source, found.kind) == ("tfds glue/sst2", "real")
    assert sources.locate("sst-2") is None  # Kim's sentences are other data
    rows = builders.read("sst-2-glue", "validation")
    cut = list(builders.labelled(rows, text="sentence"))
    assert cut == [(("it", "'s", "fine", "in", "dev"), 1)]
    assert "tensorflow" not in sys.modules


def test_tfds_without_a_network(local, monkeypatch):
    def refuse(address, timeout):
        raise OSError(101, "Network is unreachable")

    monkeypatch.setattr("socket.create_connection", refuse)
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(sources.Offline, match="TFDS cannot fetch glue"):
        builders.read("glue/sst2")
    with pytest.raises(sources.Offline, match="sst-2-glue .* is not on this ma.* glue"):
        sources.get("sst-2-glue")


def test_tfds_that_fails(local, monkeypatch):
    def fail(self, urls):
        raise tfds.download.DownloadError("status 404\nmore")

    monkeypatch.setattr(tfds.download.DownloadManager, "download", fail)
    monkeypatch.setattr(builders, "_require_network", lambda builder: None)
    with pytest.raises(
        sources.FetchError, match=r"imdb_reviews \(.*status 404"
    ) as caught:
        builders.read("imdb_reviews")
    assert "\n" not in str(caught.value)


def modules_after(code, **environment):
    code += "\nimport sys, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_readers_costs_neither_jax_nor_tfds():
    loaded = modules_after("import jaxemb.data, jaxemb.data.sources, jaxemb.data.text")
    assert "jaxemb.data.trees" in loaded
    assert not loaded & {"jax", "tensorflow", "tensorflow_datasets", "flax"}


def test_preparing_and_reading_never_imports_tensorflow(local):
    code = "from jaxemb.data import builders\nassert len(builders.read('trec')) == 2"
    loaded = modules_after(code)
    assert "tensorflow_datasets" in loaded
    assert not loaded & {"jax", "tensorflow"}


def test_newsgroups_have_the_names_of_their_groups(local):
    (local / "20newsgroups").mkdir()
    for split in ("train", "test"):
        line = f'{{"label": "sci.med", "text": "From: x\\t\\tIn {split}"}}\n'
        (local / "20newsgroups" / f"{split}.jsonl").write_text(line)
    [row] = builders.read("20newsgroups", "test")
    assert row["text"] == b"From: x\n\nIn test"
    names = builders.prepare("20newsgroups").info.features["label"].names
    assert names[row["label"]] == "sci.med"
