"""English words that say how others hang together, and texts without them.

The list is this library's own: pronouns, articles, prepositions, conjunctions, forms of
*be*, *have*, *do* and the modals, and the adverbs that programs' lists usually hold;
contractions of these are in it as one word (*don't*) and as the rest that tokenisers
leave (*n't*, *'s*).
"""

from collections.abc import Collection, Iterable

_WORDS = """
a an the this that these those such same other another each every either neither both
all any some no nor not none few more most much many own
i me my mine myself we us our ours ourselves you your yours yourself yourselves he him
his himself she her hers herself it its itself they them their theirs themselves one
who whom whose which what when where why how
and or but if because as until while although though unless whether than so
of at by for with without about against between into through during before after above
below to from up down in out on off over under upon within among across toward towards
again further then once here there now only too very just also even still yet ever
am is are was were be been being have has had having do does did doing done
can could will would shall should may might must ought cannot
"""
_STEMS = "do does did is are was were have has had could would should must might need"
_CLITICS = {
    "i": ("m", "ve", "ll", "d"),
    "you": ("re", "ve", "ll", "d"),
    "he": ("s", "ll", "d"),
    "she": ("s", "ll", "d"),
    "it": ("s", "ll", "d"),
    "we": ("re", "ve", "ll", "d"),
    "they": ("re", "ve", "ll", "d"),
    "that": ("s", "ll", "d"),
    "there": ("s", "ll", "d"),
    "who": ("s", "ll", "d"),
    "what": ("s", "re", "ll"),
    "here": ("s",),
    "how": ("s",),
    "where": ("s",),
    "let": ("s",),
}


def _english() -> frozenset[str]:
    words = {*_WORDS.split(), "can't", "won't", "shan't", "ain't", "n't"}
    words |= {f"{stem}n't" for stem in _STEMS.split()}
    words |= {f"{word}'{end}" for word, ends in _CLITICS.items() for end in ends}
    words |= {f"'{end}" for ends in _CLITICS.values() for end in ends}
    return frozenset(words | {word.replace("'", "’") for word in words})


ENGLISH = _english()


def content_words(
    tokens: Iterable[str], stop: Collection[str] = ENGLISH
) -> tuple[str, ...]:
    """The tokens without stop-words and punctuation; case stays as it is.

    Punctuation is a token without a letter or digit, and what begins with an
    apostrophe, the rest of a word that a tokeniser has cut.
    """
    return tuple(
        token
        for token in tokens
        if token.lower() not in stop
        and token[:1] not in ("'", "’")
        and any(map(str.isalnum, token))
    )
