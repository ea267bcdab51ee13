"""From a string to tokens, by the rules that published sentence classifiers used."""

import re

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
