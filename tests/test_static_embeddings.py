"""The experiment that compares trainers: one text for all, parts that are kept."""

import json

import numpy as np
import pytest

from experiments.common import cli
from experiments.common.updates import groups_of
from experiments.static_embeddings import data, main, model
from experiments.static_embeddings.config import PRESETS, SLUG
from jaxemb.data import corpus
from jaxemb.errors import InputError
from jaxemb.train import results
from tests import processes


def config_of(workdir, *arguments):
    flags = ["smoke", "--workdir", str(workdir), "--no-progress", *arguments]
    return cli.parse(SLUG, PRESETS, flags)


def test_gensim_gets_the_text_that_the_corpus_holds(tmp_path):
    text = data.load_text(config_of(tmp_path), tmp_path)
    lines = [line.split() for line in text.file.read_text().splitlines()]
    known = set(text.corpus.words)
    assert [text.corpus.sentence(i) for i in range(len(text.corpus))] == [
        kept for line in lines if (kept := [w for w in line if w in known])
    ]
    assert sum(map(len, lines)) == text.corpus.raw[-1]
    held_out = text.corpus.held_out
    assert held_out is not None
    assert len(held_out) == 20  # of 2000
    again = data.load_text(config_of(tmp_path), tmp_path)
    assert again.data == text.data
    assert isinstance(again.corpus, corpus.Corpus)


def test_finished_parts_are_kept_and_others_begun_again(tmp_path):
    flags = ["--systems", "cbow", "skipgram", "--epochs", "1"]
    first = main.run(config_of(tmp_path, *flags))
    kept = tmp_path / "cbow" / "seed-0" / "scores.json"
    scores = json.loads(kept.read_text())
    kept.write_text(json.dumps({**scores, "seconds": 12.5}))
    (tmp_path / "skipgram" / "seed-0" / "scores.json").unlink()
    (tmp_path / "skipgram" / "seed-0" / "vectors.txt").write_text("half")
    second = main.run(config_of(tmp_path, *flags))
    rows = {(r["name"], r["metric"]): r["measured"] for r in second["rows"]}
    assert rows["cbow", "seconds"] == 12.5
    before = {(r["name"], r["metric"]): r["measured"] for r in first["rows"]}
    name = "skipgram", "planted, Spearman"
    assert rows[name] == before[name]  # trained anew, to the same vectors


def test_other_settings_want_another_folder(tmp_path):
    main.run(config_of(tmp_path, "--systems", "cbow", "--epochs", "1"))
    with pytest.raises(InputError, match="holds a run with dim = 16, not 8"):
        main.run(
            config_of(tmp_path, "--systems", "cbow", "--epochs", "1", "--dim", "8")
        )


def test_gensim_is_trained_on_the_same_words(tmp_path):
    pytest.importorskip("gensim")
    written = main.run(
        config_of(tmp_path, "--systems", "cbow", "gensim-cbow", "--workers", "1")
    )
    assert {row["name"] for row in written["rows"]} == {"cbow", "gensim-cbow"}
    claims = [claim["claim"] for claim in written["claims"]]
    assert any("words a second" in claim for claim in claims)
    assert any("within 0.02" in claim for claim in claims)
    results.validate(written)


@pytest.mark.parametrize("system", ["gensim-skipgram", "gensim-cbow"])
def test_the_best_number_of_workers_is_measured_on_the_objective_itself(
    tmp_path, capsys, monkeypatch, system
):
    gensim = pytest.importorskip("gensim.models")
    tried = []

    class Word2Vec(gensim.Word2Vec):
        def __init__(self, **settings):
            tried.append(settings)
            super().__init__(**settings)

    monkeypatch.setattr(model, "_word2vec", lambda: Word2Vec)
    config = config_of(tmp_path, "--negatives", "3", "--window", "4")
    text = data.load_text(config, tmp_path)
    best = model.best_workers(config, system, text.file, tmp_path / "part.txt")
    assert [one["workers"] for one in tried] == [1, 2, 3, 4]
    assert best in (1, 2, 3, 4)
    shared = {(one["sg"], one["negative"], one["window"]) for one in tried}
    assert shared == {(int(system == "gensim-skipgram"), 3, 4)}
    assert not (tmp_path / "part.txt").exists()
    assert f"{best} it is" in capsys.readouterr().err


@pytest.mark.parametrize("update", ["100", "0", "-16"])
def test_an_update_is_whole_groups(tmp_path, update, capsys):
    with pytest.raises(SystemExit):
        config_of(tmp_path, "--update", update)
    told = " ".join(capsys.readouterr().err.split())
    assert f"--update {update}: expected a multiple of 16 words" in told
    assert groups_of(config_of(tmp_path, "--update", "48").update) == 3
    assert groups_of(config_of(tmp_path, "--update", "None").update) is None


def test_two_processes_share_one_run(tmp_path):
    """What both do not train together one does: counting, gensim, tests of vectors."""
    pytest.importorskip("gensim")
    flags = ["--systems", "glove", "gensim-cbow", "cbow", "--epochs", "1"]
    flags += ["--glove-epochs", "2"]
    together = tmp_path / "two"
    command = ["smoke", "--workdir", together, "--no-progress", *flags]
    output = processes.finish(
        processes.start_two("experiments.static_embeddings", *command), 400
    )
    assert output.count("gensim-cbow · seed 0") == 1
    written = json.loads((together / "results.json").read_text())
    assert set(written["config"]["workers"]) == {"gensim-cbow"}
    main.run(config_of(tmp_path / "one", *flags[:2], "cbow", *flags[4:]))
    for system in ("glove", "cbow"):
        tables = [
            np.loadtxt(
                tmp_path / where / system / "seed-0" / "vectors.txt",
                skiprows=1,
                usecols=range(1, 17),
            )
            for where in ("one", "two")
        ]
        np.testing.assert_allclose(*tables, atol=1e-4)
