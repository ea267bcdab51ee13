import html.parser
import json
import re

import pytest

from jaxemb.analysis import delta, figures, report
from jaxemb.errors import InputError

VOID = {"meta", "link", "br", "img", "hr", "input"}


class Page(html.parser.HTMLParser):
    """Checks that tags nest; collects what is read, and what could be loaded."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.loads, self.tags, self.text = [], [], [], [], ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        attributes = dict(attrs)
        self.ids += [attributes["id"]] if "id" in attributes else []
        for name in ("src", "href", "srcset", "data", "action"):
            if name in attributes:
                self.loads.append(attributes[name])
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text += data


def page_of(path):
    return Page(path.read_text(encoding="utf-8"))


def add_figure(run):
    shift = delta.NeighbourShift("not", (delta.Neighbour("bad", 0.5, -1),), ())
    figures.save(
        figures.neighbour_shift(shift), run / "figures" / "not.svg", "Of <not> & co."
    )


def test_the_page_says_all_that_the_run_holds(run, tmp_path):
    add_figure(run)
    page = page_of(report.write([run], tmp_path / "out" / "report.html"))
    for said in (
        "delta_embedding · made <up>",  # the title, unharmed by its brackets
        "fixed <script>alert(1)</script>",
        *("76.12", "[75.50, 76.75]", "76.66", "Table 1, row 4"),
        *("delta beats fixed & finetune", "supported", "paired difference +0.9"),
        *("rt-polarity", "real", "local folder", "10,662", "ab" * 32),
        *("1 h 2 min", "8 × cpu", "0123456789ab", "jax 0.10.2", "model.dim"),
        *("params/head/kernel", "8×3", "delta/fold-0, step 50"),
        *("Dot and bar: measured", "upright tick: published"),
        *("Of <not> & co.", "train/loss", "valid/accuracy", "2 runs"),
    ):
        assert said in page.text, said
    assert page.tags.count("svg") == 4  # intervals, neighbours, two learning curves
    assert page.tags.count("script") == 0


def test_the_page_asks_nothing_of_the_network_and_no_id_occurs_twice(run, tmp_path):
    add_figure(run)
    path = report.write([run, run], tmp_path / "report.html")
    page = page_of(path)
    assert all(load.startswith("#") or load == "data:," for load in page.loads)
    assert not re.search(r"url\((?!#)|@import", path.read_text(encoding="utf-8"))
    assert len(page.ids) == len(set(page.ids)) > 20
    links = {load[1:] for load in page.loads if load.startswith("#")}
    assert links <= set(page.ids) and {"run-0", "run-1"} <= links


def test_a_damaged_checkpoint_does_not_cost_the_page(run, tmp_path):
    for file in (run / "glove/delta/fold-0/checkpoints/50/params").glob("**/*"):
        if file.is_file():
            file.write_bytes(b"")
    page = page_of(report.write([run], tmp_path / "r.html"))
    assert "cannot be read" in page.text and "79.00" in page.text


def test_many_metrics_are_folded(run, results, tmp_path):
    rows = results["rows"]
    results["rows"] = [{**r, "metric": f"m{i}"} for r in rows for i in range(6)]
    (run / "results.json").write_text(json.dumps(results))
    page = page_of(report.write([run], tmp_path / "r.html"))
    assert "2 more metrics" in page.text and page.tags.count("svg") == 8


def test_the_same_run_gives_the_same_page(run, tmp_path):
    first = report.write([run], tmp_path / "a.html").read_bytes()
    assert report.write([run], tmp_path / "b.html").read_bytes() == first


def test_parts_that_are_missing_are_left_out(tmp_path, results):
    lone = tmp_path / "lone"
    lone.mkdir()
    (lone / "metrics.jsonl").write_text('{"step": 1, "train/loss": 2.0}\n')
    text = page_of(report.write([lone], tmp_path / "r.html")).text
    assert "lone" in text and "train/loss" in text
    for absent in ("Claims", "Results", "Data", "Parameters", "Configuration"):
        assert absent not in text
    (tmp_path / "only.json").write_text(json.dumps(results))
    text = page_of(report.write([tmp_path / "only.json"], tmp_path / "r.html")).text
    assert "Results" in text and "Learning curves" not in text


def test_arms_are_the_folders_above_folds_and_seeds(tmp_path):
    for name in ("a/fold-0", "a/fold-1", "b/x/seed_3", "b/y", "seed-1"):
        run = tmp_path / "work" / name
        run.mkdir(parents=True)
        (run / "metrics.jsonl").write_text('{"step": 1, "loss": 2.0}\n')
    arms = report.histories(tmp_path / "work")
    assert {arm: len(runs) for arm, runs in arms.items()} == {
        "a": 2,
        "b/x": 1,
        "b/y": 1,
        "work": 1,
    }


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("results.json", "{", "results.json"),
        ("metrics.jsonl", "nonsense\n", "metrics.jsonl:1: expected a JSON"),
        ("figures/x.svg", "<p>", "figures/x.svg"),
        ("config.json", "[", "config.json: not JSON"),
    ],
)
def test_a_damaged_part_is_named(tmp_path, file, text, message):
    run = tmp_path / "run"
    (run / file).parent.mkdir(parents=True)
    (run / file).write_text(text)
    with pytest.raises(InputError, match=message):
        report.write([run], tmp_path / "r.html")
    assert not (tmp_path / "r.html").exists()


@pytest.mark.parametrize("name", ["figures/x.svg", "figures/x.txt"])
def test_a_figure_that_is_not_text_is_named(run, tmp_path, name):
    (run / "figures").mkdir()
    (run / "figures" / "x.svg").write_text("<svg/>")
    (run / name).write_bytes(b"<svg>\xff</svg>")
    with pytest.raises(InputError, match=f"{name}: not valid UTF-8"):
        report.write([run], tmp_path / "r.html")


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(InputError, match="found none of these"):
        report.write([tmp_path], tmp_path / "r.html")
    with pytest.raises(InputError, match="no such run"):
        report.write([tmp_path / "absent"], tmp_path / "r.html")
