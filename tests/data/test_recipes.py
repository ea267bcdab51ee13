"""Ingredient phrases: every word of every field has its place."""

import pytest

from jaxemb.data import recipes, sources
from jaxemb.data.recipes import TAGS, align, read_recipes
from jaxemb.errors import InputError

# Worked out by hand.
BY_HAND = [
    (
        "1 1/4 cups cooked and pureed squash, or frozen squash",
        dict(
            name="squash",
            quantity="1.25",
            unit="cup",
            preparation="cooked and pureed",
            comment="or frozen squash",
        ),
        "1/Q 1/Q //Q 4/Q cups/U cooked/P and/P pureed/P squash/N ,/O or/C frozen/C "
        "squash/C",
    ),
    (
        "2 stalks celery (about 20)",
        dict(name="celery", quantity="2 20", unit="stalk", comment="(about)"),
        "2/Q stalks/U celery/N (/C about/C 20/Q )/C",
    ),
    (
        "½ cup Water",
        dict(name="water", quantity="0.5", unit="cup"),
        "1/Q //Q 2/Q cup/U Water/N",
    ),
    (
        "1/3 cup flour, sifted with 1/2 cup sugar",
        dict(
            name="flour",
            quantity="0.333",
            unit="cup",
            preparation="sifted with 0.5 cup sugar",
        ),
        "1/Q //Q 3/Q cup/U flour/N ,/O sifted/P with/P 1/P //P 2/P cup/P sugar/P",
    ),
    ("Salt", dict(name="Salt"), "Salt/N"),
]


@pytest.mark.parametrize(("phrase", "fields", "expected"), BY_HAND)
def test_alignment_by_hand(phrase, fields, expected):
    letters = {tag[0]: tag for tag in TAGS}
    split = [one.rsplit("/", 1) for one in expected.split()]
    found = align(phrase, fields)
    assert found == (
        tuple(word for word, _ in split),
        tuple(letters[letter] for _, letter in split),
    )


@pytest.mark.parametrize(
    "fields",
    [
        dict(name="butter"),
        dict(name="sugar sugar"),
        dict(name="sugar", quantity="3"),
        dict(name="white sugar"),  # not in this order
    ],
)
def test_a_word_without_a_place(fields):
    assert align("2 cups sugar, white", fields) is None
    assert align("2 cups sugar, white", dict(name="sugar")) is not None


def test_zero_below_a_fraction_is_no_number():
    assert align("1/0 cup", dict(name="cup")).tokens == ("1", "/", "0", "cup")


def test_a_file(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text(
        "input,name,quantity,unit\n1 cup rice,rice,1,cup\n2 eggs,egg,3,\nno one,,,\n"
    )
    found = read_recipes(path)
    assert (found.total, found.rate) == (2, 0.5)
    assert [p.tokens for p in found.phrases] == [("1", "cup", "rice")]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a,b\n1,2\n", "expected columns input and name, found a, b"),
        ("input,name\n1,2,3\n", "expected 2 columns"),
        ("input,name\n", "expected ingredient phrases, found none"),
        ('input,name\n"a"b,c\n', "not valid CSV"),
    ],
)
def test_problems_are_named(tmp_path, text, problem):
    path = tmp_path / "r.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=problem):
        read_recipes(path)


@pytest.mark.data
def test_the_phrases_of_the_new_york_times():
    found = sources.locate("recipes")
    if found is None:
        pytest.skip("needs recipes")
    read = recipes.read_recipes(found.part("nyt"))
    assert read.total == 30_000
    assert read.rate > 0.97
    assert {tag for phrase in read.phrases for tag in phrase.tags} == set(TAGS)
