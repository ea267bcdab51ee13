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
