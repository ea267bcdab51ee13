"""From a string to tokens, by the rules that published systems used."""

import re
from typing import NamedTuple

_NOT_KEPT = re.compile(r"[^A-Za-z0-9(),!?'`]+")
_CLITIC = re.compile(r"(n't|'(?:s|ve|re|d|ll))")
_MARK = re.compile(r"([,!?()])")
_BRACKETS = {
    "-LRB-": "(",
    "-RRB-": ")",
    "-LSB-": "[",
    "-RSB-": "]",
    "-LCB-": "{",
    "-RCB-": "}",
}
# In this order: a number with inner marks, a clitic, a word before n't, a word (letters
# and digits of any script), any other character alone.
_PIECE = re.compile(
    r"\d+(?:[.,]\d+)+"
    r"|(?:n['’]t|['’](?:s|m|d|re|ve|ll))(?![^\W_])"
    r"|[^\W_]+?(?=n['’]t(?![^\W_]))"
    r"|[^\W_]+"
    r"|\S",
    re.IGNORECASE,
)


class Token(NamedTuple):
    """A piece of a text and its place there: `text[start:end]`."""

    text: str
    start: int
    end: int


def whitespace(text: str) -> tuple[str, ...]:
    """Splits at Unicode white space and changes nothing else."""
    return tuple(text.split())


def kim(text: str, *, lower: bool = True) -> tuple[str, ...]:
    r"""Kim's (2014) rules for MR, Subj, CR and MPQA; TREC keeps case (`lower=False`).

    Every run of characters other than ASCII letters, digits and ``(),!?'` `` ends a
    token, so that *clichés* becomes *clich* and *s*; English clitics (*'s 've n't 're
    'd 'll*) and each of ``,!?()`` stand alone. A text without such characters has no
    tokens. Where the original code left a backslash before brackets and question
    marks, none is added here: *(* and *?* are words of every table, *\(* is of none.
    """
    text = _NOT_KEPT.sub(" ", text)
    text = _MARK.sub(r" \1 ", _CLITIC.sub(r" \1", text))
    return tuple((text.lower() if lower else text).split())


def kim_sst(text: str) -> tuple[str, ...]:
    """Kim's (2014) rules for SST, whose clitics and marks stand alone already."""
    return tuple(_NOT_KEPT.sub(" ", text).lower().split())


def ptb_unescape(token: str) -> str:
    r"""Undoes the Penn Treebank's escapes: `-LRB-` is `(`, `\/` is `/`, `\*` is `*`."""
    if token.upper() in _BRACKETS:
        return _BRACKETS[token.upper()]
    return token.replace("\\/", "/").replace("\\*", "*")


def english_spans(text: str) -> tuple[Token, ...]:
    """Words, clitics and marks with their exact places; only white space is left out.

    Close to the Penn Treebank's rules, which GloVe's text went through: *don't* is *do*
    and *n't*, *dog's* is *dog* and *'s*; *1,000.5* is one piece. Unlike there, every
    mark stands alone (*well-known* is three pieces, *U.S.* four), so that the answers
    of reading tasks, which may begin and end at any mark, begin and end at a piece.
    """
    return tuple(Token(m[0], m.start(), m.end()) for m in _PIECE.finditer(text))


def english(text: str) -> tuple[str, ...]:
    """The pieces of `english_spans` as tables write them; see `table_form`."""
    return tuple(map(table_form, english_spans(text)))


def table_form(token: Token) -> str:
    """How a lower-cased table writes the piece: *N’T* is *n't*."""
    return token.text.lower().replace("’", "'")
