import pytest

from jaxemb.data import semeval2012, sources
from jaxemb.errors import InputError

RATINGS = '# made\n 47.1 "a:b"\n-3.0\t"c:d"\n  0.0 "e:f"\n  0.0 "g:h"\n'
CHOICES = (
    "# pair1\tpair2\n"
    '"a:b"\t"c:d"\t"e:f"\t"g:h"\t"c:d"\t"a:b"\t"Y is X"\n'
    '"a:b"\t"c:d"\t"e:f"\t"g:h"\t""\t"e:f"\t"Y is X"\n'
)


@pytest.fixture
def parts(tmp_path):
    texts = {
        "paradigms": "1, a, KIND, Some: thing, flower:tulip,poem:sonnet\n",
        "ratings-1a": RATINGS,
        "choices-1a": CHOICES,
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return {name: tmp_path / name for name in texts}


def test_a_relation_is_read_whole(parts):
    [relation] = semeval2012.read_semeval2012(parts)
    assert relation[:3] == ("1a", "KIND", "Some: thing")
    assert relation.paradigms == (("flower", "tulip"), ("poem", "sonnet"))
    assert relation.ratings[("a", "b")] == 47.1 and len(relation.ratings) == 4
    first, second = relation.choices
    assert (first.least, first.most) == (("c", "d"), ("a", "b"))
    assert (second.least, second.most) == (None, ("e", "f"))


@pytest.mark.parametrize(
    ("part", "text", "problem"),
    [
        (
            "paradigms",
            "1, a, KIND, Thing\n",
            "paradigms:1: expected a number, a letter",
        ),
        ("paradigms", "x, a, KIND, Thing, a:b\n", "paradigms:1: expected a number"),
        (
            "paradigms",
            "1, b, KIND, Thing, a:b\n",
            "relation 1b, but its file ratings-1b",
        ),
        ("paradigms", "", "expected relations, found none"),
        ("ratings-1a", '1.0 "a-b"\n', "ratings-1a:1: expected a number and"),
        ("ratings-1a", '# x\nx "a:b"\n', "ratings-1a:2: expected a number and"),
        ("ratings-1a", 'nan "a:b"\n', "ratings-1a:1: expected a number and"),
        ("ratings-1a", "# x\n", "expected rated pairs, found none"),
        ("ratings-1a", '1.0 "a:b"\n', "asks about c:d, which .*ratings-1a does not"),
        ("choices-1a", '"a:b"\t"c:d"\n', "choices-1a:1: expected 6 columns .* found 2"),
        ("choices-1a", CHOICES.replace('"c:d"\t"e', '"cd"\t"e'), "in column 1, found"),
        (
            "choices-1a",
            CHOICES.replace('\t"a:b"\t"Y', '\t"x:y"\t"Y'),
            "none of the four",
        ),
        ("choices-1a", "", "expected choices among pairs, found none"),
    ],
)
def test_bad_files(parts, part, text, problem):
    parts[part].write_text(text)
    with pytest.raises(InputError, match=problem):
        semeval2012.read_semeval2012(parts)


@pytest.mark.data
def test_the_task_as_published():
    found = sources.locate("semeval-2012")
    if found is None:
        pytest.skip("needs analogies/semeval2012/")
    assert found.whole
    relations = semeval2012.read_semeval2012(found.parts)
    assert len(relations) == 79
    assert sum(len(r.ratings) for r in relations) == found.data_set.rows == 3218
    assert set(semeval2012.TRAINING) < {r.name for r in relations}
    # The scale is the task's own: percentage most less percentage least typical.
    for relation in relations:
        for pair in list(relation.ratings)[:3]:
            shown = [c for c in relation.choices if pair in c.pairs]
            score = sum((c.most == pair) - (c.least == pair) for c in shown)
            expected = 100 * score / len(shown)
            assert relation.ratings[pair] == pytest.approx(expected, abs=0.051)
