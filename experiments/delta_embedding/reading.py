"""Questions about paragraphs: SQuAD, and what stands in for it."""

from collections.abc import Sequence

import numpy as np

from experiments.common.datasets import described, planted
from experiments.delta_embedding.config import Config, Limits
from experiments.delta_embedding.task import Task, counted, fold, numbered
from jaxemb.data import batching, sources, squad, synthetic, tokenize, vocab
from jaxemb.data.squad import AlignedQuestion, Question
from jaxemb.train import results


def load(config: Config) -> Task:
    """Reads the questions to train on, a tenth of them dev, and those to test on."""
    if config.planted:
        world = synthetic.planted_questions()
        train = _share(world.train, config.share)
        data = planted("planted questions", len(train) + len(world.test))
        return _task(config, train, world.test, (data,), {})
    if config.task == "squad":
        found = sources.get("squad")
        train, test = (_read(found, part) for part in ("train", "validation"))
        train = _share(train, config.share)
        data = counted(found, len(train) + len(test))
        return _task(config, train, test, (data,), {})
    found, other = sources.get("squad2-half-dev"), sources.get("xquad")
    test = squad.read_squad(other.part("en"))
    answerable = [q for q in squad.read_squad(found.part("train")) if q.answers]
    tested = {_plain(q.context) for q in test}
    apart = [q for q in answerable if _plain(q.context) not in tested]
    train = _share(apart, config.share)
    notes = {
        "answerable_questions": len(answerable),
        "questions_whose_paragraph_is_in_test": len(answerable) - len(apart),
        "articles": "of all paragraphs trained on, others are in test",
    }
    data = (
        described(found, len(train)),
        described(other, len(test), name="xquad-en", kind="subset"),
    )
    return _task(config, train, test, data, notes)


def _read(found: sources.Found, part: str) -> list[Question]:
    if not found.parts:  # prepared by TFDS
        from jaxemb.data import builders  # TFDS is slow to import

        return builders.questions(builders.read(found.data_set.name, part))
    return squad.read_squad(found.part(part))


def _share(questions: Sequence[Question], share: float) -> Sequence[Question]:
    """The questions of a share of the paragraphs, at least two; one is for dev."""
    if share == 1:
        return questions
    paragraphs = list(dict.fromkeys(q.context for q in questions))
    order = np.random.default_rng(0).permutation(len(paragraphs))
    kept = {paragraphs[i] for i in order[: max(2, round(share * len(paragraphs)))]}
    return [q for q in questions if q.context in kept]


def _plain(text: str) -> str:
    """A paragraph as it is compared: case and white space do not count."""
    return " ".join(text.lower().split())


def _task(
    config: Config,
    train: Sequence[Question],
    test: Sequence[Question],
    data: tuple[results.Data, ...],
    notes: dict,
) -> Task:
    learnt, tested = squad.align(train), squad.align(test)
    questions = (*learnt.questions, *tested.questions)
    paragraphs = numbered([q.source.context for q in learnt.questions])
    rest, chosen, dev = fold(len(paragraphs), 10, 0, paragraphs)
    rows = np.concatenate([rest, chosen])
    usable = np.array([_usable(questions[r], config.limits) for r in rows], bool)
    notes = {
        **notes,
        "answers_to_train_on": str(learnt),
        "answers_to_test_on": str(tested),
        "dev": "a tenth of the paragraphs to train on",
        "left_out_of_training": f"{int(np.sum(~usable))} questions without an aligned "
        f"answer or longer than the limits",
    }
    words = vocab.Vocab.build(
        map(tokenize.table_form, text)
        for q in questions
        for text in (q.context, q.words)
    )
    by_paragraph = {q.source.context: q.context for q in questions}
    contexts = {
        paragraph: words.encode(map(tokenize.table_form, tokens))
        for paragraph, tokens in by_paragraph.items()
    }

    # The first answer counts in training; all count in evaluation.
    spans = [q.spans[0] if q.spans else squad.Span(0, 0) for q in questions]
    return Task(
        vocab=words,
        columns={
            "context": batching.Ragged.of(
                [contexts[q.source.context] for q in questions]
            ),
            "question": batching.Ragged.of(
                [words.encode(map(tokenize.table_form, q.words)) for q in questions]
            ),
            "start": np.array([span.first for span in spans], np.int32),
            "end": np.array([span.last for span in spans], np.int32),
            "number": np.arange(len(questions), dtype=np.int32),
        },
        data=data,
        splits=(rows[usable], dev, np.arange(len(learnt.questions), len(questions))),
        questions=questions,
        notes=notes,
    )


def _usable(question: AlignedQuestion, limits: Limits) -> bool:
    """Whether a question can be trained on."""
    short = len(question.context) <= limits.context
    return bool(question.spans) and short and len(question.words) <= limits.question
