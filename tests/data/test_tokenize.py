import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxemb.data import tokenize

SENTENCE_LIKE = st.text(
    st.sampled_from("abnstvedlrABNST019(),!?'`é…–\x85 \t.-\"n'tsve're'll'd")
    | st.characters()
)


def by_the_published_steps(text, lower=True):
    """The paper's cleaning, one substitution after another."""
    text = re.sub(r"[^A-Za-z0-9(),!?'`]", " ", text)
    for clitic in ("'s", "'ve", "n't", "'re", "'d", "'ll"):
        text = text.replace(clitic, f" {clitic}")
    for mark in ",!()?":
        text = text.replace(mark, f" {mark} ")
    text = re.sub(r"\s{2,}", " ", text).strip(" ")
    return tuple((text.lower() if lower else text).split(" ")) if text else ()


@given(SENTENCE_LIKE, st.booleans())
def test_kim_is_the_published_steps(text, lower):
    assert tokenize.kim(text, lower=lower) == by_the_published_steps(text, lower)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("it's so laddish , isn't it ?", "it 's so laddish , is n't it ?"),
        ("clichés (they've)…", "clich s ( they 've )"),
        ("you'd we'll THEY'RE", "you 'd we 'll they're"),  # only lower-case clitics
        (". . . --", ""),
    ],
)
def test_kim_examples(text, tokens):
    assert tokenize.kim(text) == tuple(tokens.split())


def test_kim_keeps_case_for_trec():
    assert tokenize.kim("Who is Popeye?", lower=False) == ("Who", "is", "Popeye", "?")


def test_kim_sst_leaves_clitics():
    text = "it 's crème , don't ."
    assert tokenize.kim_sst(text) == ("it", "'s", "cr", "me", ",", "don't")


@given(st.text())
def test_tokens_are_never_empty_and_hold_no_space(text):
    for cut in (tokenize.kim, tokenize.kim_sst, tokenize.whitespace):
        assert all(token and not re.search(r"\s", token) for token in cut(text))


def test_ptb_escapes():
    escaped = ["-LRB-", "-rrb-", r"Singer\/composer", r"\*", "-LRB", "film"]
    plain = ["(", ")", "Singer/composer", "*", "-LRB", "film"]
    assert [tokenize.ptb_unescape(token) for token in escaped] == plain


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I don't know Rollo's heirs.", "i do n't know rollo 's heirs ."),
        ("They’re “here”, aren’t they?", "they 're “ here ” , are n't they ?"),
        ("1,066.5 well-known U.S. 10th", "1,066.5 well - known u . s . 10th"),
        ("do n't", "do n't"),
        ("'sx n'tx ' s", "' sx n ' tx ' s"),
        (" \u00a0\n", ""),
    ],
)
def test_english(text, expected):
    assert tokenize.english(text) == tuple(expected.split())


@given(SENTENCE_LIKE)
def test_english_pieces_are_the_text_without_its_white_space(text):
    pieces = tokenize.english_spans(text)
    assert all(piece.text == text[piece.start : piece.end] for piece in pieces)
    assert "".join(p.text for p in pieces) == "".join(text.split())
    assert sorted(pieces, key=lambda p: p.start) == list(pieces)


@given(SENTENCE_LIKE)
def test_cutting_english_again_changes_nothing(text):
    once = [piece.text for piece in tokenize.english_spans(text)]
    again = [piece.text for piece in tokenize.english_spans(" ".join(once))]
    assert again == once
