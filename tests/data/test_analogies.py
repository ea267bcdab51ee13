import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxemb.data import analogies, sources
from jaxemb.data.analogies import Analogy
from jaxemb.errors import InputError

QUESTION = Analogy("Athens", "Greece", "Oslo", "Norway")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (": x\nAthens Greece Oslo Norway\n", {"x": [QUESTION]}),
        (":x\nAthens\tGreece  Oslo Norway\r\n\n", {"x": [QUESTION]}),
        ("Athens Greece Oslo Norway", {"all": [QUESTION]}),
        (
            ": a b\nAthens Greece Oslo Norway\n: empty\n",
            {"a b": [QUESTION], "empty": []},
        ),
    ],
)
def test_sections(tmp_path, content, expected):
    path = tmp_path / "questions.txt"
    path.write_bytes(content.encode())
    assert analogies.read_analogies(path) == expected


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "expected analogy questions, found none"),
        (": x\n", "expected analogy questions, found none"),
        (": x\na b c\n", "txt:2: expected four words, .* found 3"),
        (": x\na b c d e\n", "txt:2: expected four words, .* found 5"),
        (":\na b c d\n", "txt:1: expected a name after the colon"),
        ("a b c d\n: x\na b c d\n", "txt:2: the first section header, 'x', comes"),
        (": x\na b c d\n: x\n", "txt:3: section 'x' already began in line 1"),
    ],
)
def test_bad_files(tmp_path, content, problem):
    path = tmp_path / "bad.txt"
    path.write_text(content)
    with pytest.raises(InputError, match=problem):
        analogies.read_analogies(path)


@given(st.binary() | st.text("ab: \n\t").map(str.encode))
def test_random_bytes_raise_only_input_errors(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("analogies") / "random.txt"
    path.write_bytes(content)
    try:
        read = analogies.read_analogies(path)
    except InputError as error:
        assert str(path) in str(error)
    else:
        assert any(read.values())


@pytest.mark.data
def test_google_and_msr():
    found = sources.locate("analogies")
    if found is None:
        pytest.skip("needs analogies/questions-words.txt and msr-analogies.txt")
    google, msr = (analogies.read_analogies(found.part(p)) for p in ("google", "msr"))
    semantic = sum(len(q) for n, q in google.items() if not n.startswith("gram"))
    assert len(google) == 14 and semantic == 8869  # as published
    # Some copies have one more, `rare rarely rare rarely`, than the published 10,675.
    extra = Analogy("rare", "rarely", "rare", "rarely")
    repeated = google["gram1-adjective-to-adverb"].count(extra)
    assert sum(map(len, google.values())) == 19_544 + repeated
    assert list(map(len, msr.values())) == [8000]
