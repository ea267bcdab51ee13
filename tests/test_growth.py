"""How cost grows: the power of a line, and that every line can be made."""

import numpy as np
import pytest

from tests import loading


@pytest.fixture(scope="module")
def growth():
    return loading.script("benchmarks/growth.py")


@pytest.mark.parametrize("wanted", [0.0, 1.0, 2.5])
def test_the_power_of_a_law_is_found(growth, wanted):
    sizes = [10, 20, 40, 80]
    seconds = [3e-3 * size**wanted for size in sizes]
    assert growth.power(sizes, seconds) == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("variable", ["words of a sentence", "pairs", "words a side"])
def test_lines_are_measured(growth, variable):
    line = next(line for line in growth.LINES if line.variable == variable)
    row = growth.measured(line._replace(sizes=(32, 64)))
    assert row["sizes"] == [32, 64]
    assert np.isfinite(row["power"])
    assert min(row["seconds"]) > 0
    assert "ms at 64" in growth.shown(row)[""]
