"""Starting: `import jaxemb` beside `import jax`, and `jaxemb --help`.

    python scripts/benchmarks/startup.py

Every import happens in a fresh process, by turns; what an interpreter takes without any
is taken off. `jaxemb --help` must not import jax.
"""

import json
import statistics
import subprocess
import sys

from ratios import row, seconds

REPEATS = 9
TARGET = 1 / 0.3


def comparisons() -> list[dict]:
    """The ratio as `scripts/bench` shows it."""
    _check_help()
    programs = "pass", "import jaxemb", "import jax"
    for program in programs:
        _run(program)  # so that files are cached
    times = [[seconds(lambda p=p: _run(p)) for p in programs] for _ in range(REPEATS)]
    empty = statistics.median(t[0] for t in times)
    # An import may take less than two interpreters differ by.
    pairs = [(max(t[1] - empty, 1e-3), t[2] - empty) for t in times]
    own, peer = (1e3 * statistics.median(p[i] for p in pairs) for i in (0, 1))
    note = f"{own:.0f} ms (jax {peer:.0f} ms); `jaxemb --help` imports no jax"
    return [row("import jaxemb", "import jax", pairs, TARGET, note)]


def _run(program: str) -> str:
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout


def _check_help() -> None:
    shown = _run(
        "import sys\n"
        "from jaxemb import cli\n"
        "sys.argv = ['jaxemb', '--help']\n"
        "try:\n    cli.main()\nexcept SystemExit:\n    pass\n"
        "print('imported:', 'jax' in sys.modules)"
    )
    if "usage" not in shown.lower() or not shown.endswith("imported: False\n"):
        raise AssertionError(f"`jaxemb --help` imports jax, or shows no help: {shown}")


if __name__ == "__main__":
    for found in comparisons():
        print(json.dumps(found, indent=1))
