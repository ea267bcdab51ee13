"""Span F1 against conlleval's own loop and against seqeval."""

import collections

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics import sequence_labeling
from seqeval.scheme import IOB1, IOB2, IOBES, Entities

from jaxemb.data import tags as tags_lib
from jaxemb.data.tags import Span
from jaxemb.errors import InputError
from jaxemb.eval import intervals, spans

TYPES = "X", "Y"
IOB = ["O", *(f"{letter}-{kind}" for letter in "BI" for kind in TYPES)]
ALL = [*IOB, *(f"{letter}-{kind}" for letter in "ES" for kind in TYPES)]


def sentences(tags):
    pair = st.lists(st.tuples(st.sampled_from(tags), st.sampled_from(tags)), max_size=8)
    return st.lists(pair, max_size=5).map(
        lambda rows: tuple([[p[i] for p in row] for row in rows] for i in (0, 1))
    )


def conlleval(gold, predicted):
    """The loop of the Perl program, which keeps no spans: counts by type, and hits."""
    correct, found, true = (collections.Counter() for _ in range(3))
    same = 0
    rows = []
    for right, ours in zip(gold, predicted, strict=True):
        rows += [*zip(right, ours, strict=True), ("O", "O")]
    last = {"g": ("O", ""), "p": ("O", "")}
    in_correct = False

    def ends(before, tag):
        (a, kind), (b, new) = before, tag
        pairs = {"BB", "BO", "IB", "IO", "EE", "EI", "EO"}
        return a + b in pairs or (a not in "O." and kind != new)

    def starts(before, tag):
        (a, kind), (b, new) = before, tag
        pairs = {"BB", "IB", "OB", "OI", "EE", "EI", "OE"}
        return a + b in pairs or (b not in "O." and kind != new)

    for right, ours in rows:
        now = {
            "g": tuple(right.partition("-")[::2]),
            "p": tuple(ours.partition("-")[::2]),
        }
        end = {side: ends(last[side], now[side]) for side in "gp"}
        start = {side: starts(last[side], now[side]) for side in "gp"}
        if in_correct:
            if end["g"] and end["p"] and last["g"][1] == last["p"][1]:
                in_correct = False
                correct[last["g"][1]] += 1
            elif end["g"] != end["p"] or now["g"][1] != now["p"][1]:
                in_correct = False
        if start["g"] and start["p"] and now["g"][1] == now["p"][1]:
            in_correct = True
        true[now["g"][1]] += start["g"]
        found[now["p"][1]] += start["p"]
        same += right == ours
        last = now
    return correct, found, true, same - len(gold)


@given(sentences(IOB))
def test_counts_equal_those_of_conlleval(pair):
    gold, predicted = pair
    scores = spans.span_scores(gold, predicted, resamples=0)
    correct, found, true, same = conlleval(gold, predicted)
    for kind in TYPES:
        counts = scores.types.get(kind, spans.Counts(0, 0, 0))
        assert counts == spans.Counts(correct[kind], found[kind], true[kind])
    words = sum(map(len, gold))
    assert scores.words == words
    assert scores.accuracy == same / words if words else np.isnan(scores.accuracy)


def of_seqeval(tags, scheme):
    if scheme is None:
        found = sequence_labeling.get_entities(tags)
        return [Span(start, end + 1, kind) for kind, start, end in found]
    classes = {"IOB1": IOB1, "IOB2": IOB2, "BIOES": IOBES}
    [found] = Entities([tags], classes[scheme]).entities
    return [Span(e.start, e.end, e.tag) for e in found]


@pytest.mark.parametrize("scheme", [None, "IOB1", "IOB2", "BIOES"])
@given(st.data())
def test_spans_equal_seqeval(scheme, data):
    allowed = IOB if scheme in ("IOB1", "IOB2") else ALL
    tags = data.draw(st.lists(st.sampled_from(allowed), max_size=8))
    assert tags_lib.spans(tags, scheme) == of_seqeval(tags, scheme)


@pytest.mark.parametrize("scheme", [None, "BIOES"])
@given(st.data())
def test_scores_are_a_plain_loop_over_spans(scheme, data):
    gold, predicted = data.draw(sentences(ALL))
    scores = spans.span_scores(gold, predicted, scheme=scheme, resamples=0)
    sides = [
        [(i, *span) for i, row in enumerate(side) for span in of_seqeval(row, scheme)]
        for side in (gold, predicted)
    ]
    hits = sum(span in sides[1] for span in sides[0])
    assert scores.whole == spans.Counts(hits, len(sides[1]), len(sides[0]))
    assert sum(scores.types.values(), start=spans.Counts(0, 0, 0)) == scores.whole
    assert scores.sentences.sum(axis=0).tolist() == [hits, len(sides[1]), len(sides[0])]
    precision = hits / len(sides[1]) if sides[1] else 0
    recall = hits / len(sides[0]) if sides[0] else 0
    total = precision + recall
    expected = 2 * precision * recall / total if total else 0
    assert scores.f1 == pytest.approx(expected)


def test_an_example():
    gold = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-LOC", "I-LOC"]]
    ours = [["B-PER", "I-PER", "O", "I-LOC"], ["B-LOC", "B-LOC", "O"]]
    lenient = spans.span_scores(gold, ours)
    assert lenient.whole == spans.Counts(2, 4, 3)
    assert lenient.types["PER"].f1 == 1
    assert lenient.types["LOC"] == spans.Counts(1, 3, 2)
    assert lenient.accuracy == pytest.approx(4 / 7)
    strict = spans.span_scores(gold, ours, scheme="IOB2")
    assert strict.whole == spans.Counts(1, 3, 3)
    assert lenient.mode == lenient.as_dict()["mode"] == "conlleval"
    assert strict.mode == "strict IOB2"
    assert lenient.as_dict()["types"]["LOC"]["recall"] == 0.5
    assert lenient.cells()[-1]["F1"] == "57.14"
    assert lenient.low <= lenient.f1 <= lenient.high


def test_differences_pair_by_sentence():
    gold = [["B-X", "O"], ["O", "B-Y"], ["B-X", "B-X"], ["O", "O"]] * 5
    worse = [["O", "O"], *gold[1:]] * 5
    better, less = (spans.span_scores(gold, p) for p in (gold, worse[: len(gold)]))
    gap = intervals.paired_bootstrap(
        spans.f1_statistic(better.sentences), spans.f1_statistic(less.sentences), 20
    )
    assert gap.mean == pytest.approx(better.f1 - less.f1)
    assert gap.low >= 0


@given(st.data(), st.sampled_from(["IOB1", "IOB2", "BIOES"]))
def test_every_scheme_writes_the_same_spans(data, scheme):
    tags = data.draw(st.lists(st.sampled_from(ALL), max_size=8))
    again = tags_lib.convert(tags, scheme)
    assert tags_lib.spans(again) == tags_lib.spans(tags)
    assert tags_lib.spans(again, scheme) == tags_lib.spans(tags)


def test_mistakes_are_named():
    with pytest.raises(InputError, match="as many sentences as the 1"):
        spans.span_scores([["O"]], [])
    with pytest.raises(InputError, match="sentence 1: expected 2 tags, found 1"):
        spans.span_scores([["O"], ["O", "O"]], [["O"], ["O"]])
    with pytest.raises(InputError, match="the tag 'PER' is none"):
        spans.span_scores([["O"]], [["PER"]])
    with pytest.raises(InputError, match="'S-X' is none of IOB2"):
        tags_lib.spans(["S-X"], "IOB2")
    with pytest.raises(InputError, match="the span 1 to 3 is not inside 2 words"):
        tags_lib.tags_of([Span(1, 3, "X")], 2)
    with pytest.raises(InputError, match="overlaps"):
        tags_lib.tags_of([Span(0, 2, "X"), Span(1, 3, "Y")], 4)
