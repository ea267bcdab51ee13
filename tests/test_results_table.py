"""Drawings of committed results: which rows, and whether they are stale."""

from xml.etree import ElementTree

import pytest

from jaxemb.errors import InputError
from jaxemb.train import results
from tests import loading


@pytest.fixture(scope="module")
def table():
    return loading.script("results_table.py")


def made(count, metric="test accuracy (%)", slug="delta_embedding"):
    rows = [
        {"name": f"arm {i}", "metric": metric, "measured": float(i % 7 * 10 + i),
         "values": [], "interval": None, "published": None, "source": None}
        for i in range(count)
    ]  # fmt: skip
    other = {**rows[0], "metric": "another"}
    return {"slug": slug, "preset": "p", "config": {}, "rows": [*rows, other]}


def test_a_finished_run_is_taken_in(table, tmp_path):
    run, experiments = tmp_path / "run", tmp_path / "experiments"
    (experiments / "some_paper").mkdir(parents=True)
    (run / "figures").mkdir(parents=True)
    (run / "figures" / "curves.svg").write_text("<svg/>")
    row = results.Row(name="a", metric="m", measured=1.0, values=(1.0,), interval=None)
    for number in (1, 2):
        results.write(
            run, slug="some_paper", preset="small", config={"n": number}, data=[],
            rows=[row], claims=[], origins=[{"commits": ["abc"], "seconds": 1.0}],
        )  # fmt: skip
        path = table.take(run, experiments)
        old = path.with_suffix("") / "old.svg"
        assert path == experiments / "some_paper" / "results" / "small.json"
        assert results.read(path)["config"] == {"n": number}
        assert (path.with_suffix("") / "curves.svg").exists()
        assert not old.exists()  # figures of an earlier run are gone
        old.write_text("<svg/>")
    results.write(
        run, slug="some_paper", preset="small", config={}, data=[], rows=[row],
        claims=[], origins=[{"commits": ["abc+changes"], "seconds": 1.0}],
    )  # fmt: skip
    with pytest.raises(InputError, match="ran on uncommitted code"):
        table.take(run, experiments)


def test_few_rows_are_drawn_in_their_order(table):
    title, rows = table.selected(made(5))
    assert title == "test accuracy (%)"
    assert [row["name"] for row in rows] == [f"arm {i}" for i in range(5)]


def test_of_many_rows_the_best_are_drawn(table):
    results = made(60)
    title, rows = table.selected(results)
    assert title == "test accuracy (%), the best 40 of 60 systems"
    every = sorted((r["measured"] for r in results["rows"][:-1]), reverse=True)
    assert [row["measured"] for row in rows] == every[:40]


def test_where_less_is_better_the_lowest_are_drawn(table):
    results = made(60, "held-out D1", "subword_reconstruction")
    _, rows = table.selected(results)
    every = sorted(row["measured"] for row in results["rows"][:-1])
    assert [row["measured"] for row in rows] == every[:40]


def test_a_drawing_tells_which_rows_it_is_of(table):
    results = made(3)
    drawing = table.draw(results)
    assert ElementTree.fromstring(drawing).tag.endswith("svg")
    assert drawing.endswith(table.digest(results))
    other = made(3)
    other["rows"][1]["measured"] += 1e-9
    assert not drawing.endswith(table.digest(other))
    aside = made(3)
    aside["rows"][-1]["measured"] = 5.0  # another metric, which is not drawn
    assert drawing.endswith(table.digest(aside))


def test_figures_of_a_run_stand_behind_that_of_the_metric(table, tmp_path):
    folder = tmp_path / "p"
    folder.mkdir()
    (folder / "norms-by-word.svg").write_text("<svg/>")
    (folder / "norms-by-word.txt").write_text("What it shows.\n")
    lines = table.drawings_of(tmp_path / "p.json", made(2))
    assert lines[0] == "![test accuracy (%) of p](results/p.svg)"
    shown = lines.index("![norms by word](results/p/norms-by-word.svg)")
    assert lines[shown + 2] == "What it shows."
