"""What devices share of a step, by the bench's own measure at small sizes."""

import importlib.util
import pathlib
import sys

import pytest

from jaxemb.analysis import cost

SCRIPT = pathlib.Path(__file__).parents[1] / "scripts" / "benchmarks" / "scaling.py"


@pytest.fixture(scope="module")
def measured():
    """By work: one device's cost of all examples, and of an eighth of them."""
    spec = importlib.util.spec_from_file_location("scaling", SCRIPT)
    scaling = importlib.util.module_from_spec(spec)
    sys.modules["scaling"] = scaling  # where its dataclass looks its annotations up
    spec.loader.exec_module(scaling)
    rows = scaling.measure(scaling.SMALL, counts=(1, 8))
    couples = zip(rows[::2], rows[1::2], strict=True)
    return {one["work"]: (one, eight) for one, eight in couples}, scaling


@pytest.mark.parametrize("work", ["skip-gram", "BiLSTM-CRF", "masked LM"])
def test_eight_devices_share_the_work(measured, work):
    rows, _ = measured
    alone, shared = rows[work]
    assert (alone["devices"], shared["devices"]) == (1, 8)
    # An eighth of the examples' part; each device updates all parameters.
    assert alone["flops"] / 8 <= shared["flops"] < alone["flops"] / 5
    assert shared["bytes"] < alone["bytes"]
    assert alone["collectives"] == 0 < shared["collectives"]


@pytest.mark.parametrize("work", ["BiLSTM-CRF", "masked LM"])
def test_what_is_exchanged_are_gradients(measured, work):
    """As many bytes as the parameters, but for the pooler, which has no gradient."""
    rows, scaling = measured
    _, state, _ = dict(scaling.made(scaling.SMALL))[work]
    _, shared = rows[work]
    assert shared["kinds"] == ["all-reduce"]
    numbers = cost.count_params(state.params)
    more = 8  # the loss, and whether the CRF needs its slower form
    # What is read in several places has as many gradients, which CPU's compiler has
    # summed over the devices each by itself.
    if work == "masked LM":
        numbers += scaling.SMALL.vocab * scaling.SMALL.width
        numbers -= cost.count_params(state.params["encoder"]["pool"])
    else:
        more += 2 * cost.count_params(state.params["crf"])
    assert 0 <= shared["exchanged_bytes"] - 4 * numbers <= 4 * more
