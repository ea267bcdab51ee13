"""What devices share of a step, by the bench's own measure at small sizes."""

import pytest

from jaxemb.analysis import cost
from tests import loading


@pytest.fixture(scope="module")
def measured():
    """By work: one device's cost of all examples, and of an eighth of them."""
    scaling = loading.script("benchmarks/scaling.py")
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
