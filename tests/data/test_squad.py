import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxemb.data import sources, squad, tokenize
from jaxemb.data.squad import Answer, Question, Span
from jaxemb.errors import InputError

CONTEXT = "The “Norman” dukes, c. 1,066, didn't stay: Rollo's heirs left."


def file_of(*questions, **more):
    return {"data": [{"title": "T", "paragraphs": [paragraph(*questions)]}], **more}


def paragraph(*questions):
    return {"context": CONTEXT, "qas": list(questions)}


def entry(answers=(("Norman", 5),), **more):
    listed = [{"text": text, "answer_start": start} for text, start in answers]
    return {"id": "q", "question": "Who?", "answers": listed, **more}


def write(tmp_path, content):
    path = tmp_path / "squad.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_questions_in_the_order_of_the_file(tmp_path):
    plausible = [{"text": "Rollo", "answer_start": 43}]
    content = file_of(
        entry(),
        entry((), is_impossible=True, plausible_answers=plausible),
        version="v2.0",
    )
    content["data"].append({"paragraphs": [paragraph(entry())]})  # XQuAD has no titles
    read = squad.read_squad(write(tmp_path, content))
    assert read[0] == Question("q", "T", CONTEXT, "Who?", (Answer("Norman", 5),))
    assert read[1].answers == ()
    assert [q.title for q in read] == ["T", "T", ""]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ([], "the file: expected an object with 'data'"),
        ({"data": 3}, "data: expected a list"),
        (file_of(), "no question"),
        (file_of(entry(), {}), r"data\[0\].paragraphs\[0\].qas\[1\]: .* with 'id'"),
        (file_of(entry(question=1)), r"qas\[0\].question: expected a string"),
        (file_of({**entry(), "answers": 7}), r"answers: expected a list"),
        (file_of(entry([("x", "1")])), "answer_start: expected a whole number"),
        (file_of(entry([("x", True)])), "answer_start: expected a whole number"),
    ],
)
def test_bad_files(tmp_path, content, problem):
    with pytest.raises(InputError, match=problem):
        squad.read_squad(write(tmp_path, content))


@given(
    st.binary()
    | st.text('{}[]":,data0').map(str.encode)
    | st.recursive(
        st.none() | st.integers() | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=2)
            | st.dictionaries(
                st.sampled_from(["data", "paragraphs", "qas", "context", "answers"]),
                inner,
            )
        ),
        max_leaves=8,
    ).map(lambda value: json.dumps(value).encode())
)
def test_random_files_raise_only_input_errors(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("squad") / "random.json"
    path.write_bytes(content)
    try:
        assert squad.read_squad(path)
    except InputError as error:
        assert str(path) in str(error) and "\n" not in str(error)


def test_nested_without_end(tmp_path):
    path = tmp_path / "deep.json"
    path.write_text("[" * 100_000)
    with pytest.raises(InputError, match="not JSON"):
        squad.read_squad(path)


def question(*answers):
    return Question("q", "", CONTEXT, "Who?", tuple(answers))


@pytest.mark.parametrize(
    "text", ["Norman", "“Norman”", "1,066", "did", "n't stay", "Rollo", "left", CONTEXT]
)
def test_answers_are_found_to_the_character(text):
    answer = Answer(text, CONTEXT.index(text))
    found = squad.align([question(answer)])
    (aligned,) = found.questions
    assert (found.answers, found.misplaced, found.inside, found.lost) == (1, 0, 0, 0)
    assert aligned.text(aligned.spans[0]) == text


def test_what_does_not_align_is_counted_and_never_moved():
    found = squad.align(
        [
            question(Answer("Norman", 6), Answer("Norm", 5), Answer("Norman ", 5)),
            question(Answer("orman", 6), Answer("x", 10**6), Answer("The", -66)),
            question(Answer(" dukes", 12), Answer("066", CONTEXT.index("066"))),
            question(),
        ]
    )
    assert [len(q.spans) for q in found.questions] == [0, 0, 1, 0]
    assert found.questions[2].spans == (Span(4, 4),)
    assert (found.answers, found.misplaced, found.inside, found.lost) == (8, 4, 3, 2)
    assert "8 answers, of which 4 are not where they say and 3 begin" in str(found)


@given(st.data(), st.text("ab n't'’s 1,0.-_", max_size=30))
def test_any_span_of_tokens_is_found_again(data, context):
    """The oracle: characters cut out by hand, at the ends of any two tokens."""
    tokens = tokenize.english_spans(context)
    if not tokens:
        return
    first = data.draw(st.integers(0, len(tokens) - 1))
    last = data.draw(st.integers(first, len(tokens) - 1))
    start, end = tokens[first].start, tokens[last].end
    answer = Answer(context[start:end], start)
    found = squad.align([Question("q", "", context, "", (answer,))])
    assert found.questions[0].spans == (Span(first, last),)
    assert found.questions[0].text(Span(first, last)) == answer.text


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "part", "questions", "answerable", "lost"),
    [("squad2-half-dev", "train", 6078, 2910, 0.01), ("xquad", "en", 1190, 1190, 0.01)],
)
def test_the_real_files(name, part, questions, answerable, lost):
    found = sources.locate(name)
    if found is None:
        pytest.skip(f"needs {sources.DATA_SETS[name].parts[part].local[0]}")
    read = squad.read_squad(found.part(part))
    assert len(read) == len({q.id for q in read}) == questions
    assert sum(bool(q.answers) for q in read) == answerable
    aligned = squad.align(read)
    assert aligned.misplaced == 0
    assert aligned.lost <= lost * answerable
    for q in aligned.questions[:200]:
        answers = {answer.text.strip() for answer in q.source.answers}
        assert {q.text(span) for span in q.spans} <= answers
