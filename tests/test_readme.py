"""The pieces of Python in the README run as they stand, on small files."""

import pathlib
import re

import pytest

from jaxemb import pretrained
from jaxemb.data import synthetic, vectors

README = pathlib.Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.S)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    world = synthetic.planted_languages(num_words=300)
    vectors.write_word_vectors("english.vec", world.source)
    vectors.write_word_vectors("french.vec", world.target)
    lines = [f"{s}\t{t}\n" for s, t in world.translations]
    pathlib.Path("pairs.tsv").write_text("".join(lines[:100]))
    numbers = " ".join(["0.5"] * 100)
    words = ("not", "good", "bad")
    pathlib.Path("glove.6B.100d.txt").write_text(
        "".join(f"{word} {numbers}\n" for word in words)
    )
    topics = synthetic.planted_topics()
    sentences = [" ".join(sentence) + "\n" for sentence in topics.sentences]
    pathlib.Path("sentences.txt").write_text("".join(sentences))
    return tmp_path


def block_with(text):
    [block] = [block for block in BLOCKS if text in block]
    return block


def run(block):
    names = {}
    exec(compile(block, "README.md", "exec"), names)
    return names


def test_a_table_with_a_correction(folder):
    names = run(block_with("nn.DeltaEmbedding("))
    assert float(names["penalty"]) == 0.0
    assert names["variables"]["params"]["delta"].shape[1] == 100


def test_word_vectors_are_trained_and_read_by_gensim(folder):
    gensim = pytest.importorskip("gensim", reason="needs the extra 'test'")
    names = run(block_with("static.train("))
    path = str(folder / "vectors.bin")
    read = gensim.models.KeyedVectors.load_word2vec_format(path, binary=True)
    assert tuple(read.index_to_key) == names["tables"].words


def test_a_pretrained_encoder_is_read(folder, bert, capsys):
    pretrained.save_hf("all-MiniLM-L6-v2", bert)
    names = run(block_with("pretrained.load_hf("))
    assert names["vectors"].shape == (2, bert.config.dim)
    assert "1." in capsys.readouterr().out


def test_a_lexicon_is_induced(folder, capsys):
    names = run(block_with("align.advanced("))
    translation = dict(synthetic.planted_languages(num_words=300).translations)
    assert names["english"].words[0] in capsys.readouterr().out
    right = [
        translation[word] == names["french"].words[best]
        for word, best in zip(
            names["english"].words, names["best"].rows[:, 0], strict=True
        )
    ]
    assert sum(right) > 0.9 * len(right)
