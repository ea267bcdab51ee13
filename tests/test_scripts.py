"""The set-up that demo, test and bench share."""

import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[1]


@pytest.fixture
def checkout(tmp_path):
    """A folder with the set-up script and a Python that only notes how it is called."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "setup.sh", tmp_path / "scripts")
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\n')
    python.chmod(0o755)
    return tmp_path


def ensure(checkout, *extras):
    """Runs the set-up and returns what was installed."""
    calls = checkout / "calls"
    calls.unlink(missing_ok=True)
    script = (
        f"source {checkout}/scripts/setup.sh; "
        f"ensure_environment .venv {' '.join(extras)}"
    )
    subprocess.run(["bash", "-euo", "pipefail", "-c", script], check=True)
    return calls.read_text().split()[-1] if calls.exists() else None


def test_extras_add_up_and_a_second_run_installs_nothing(checkout):
    assert ensure(checkout) == "."
    assert ensure(checkout) is None
    assert ensure(checkout, "test") == ".[test]"
    assert ensure(checkout, "test") is None
    assert ensure(checkout) is None
    assert ensure(checkout, "test", "oracles") == ".[test,test,oracles]"
    assert ensure(checkout, "oracles") is None


def test_a_new_pyproject_installs_again(checkout):
    assert ensure(checkout, "test") == ".[test]"
    (checkout / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert ensure(checkout, "test") == ".[test]"


@pytest.mark.parametrize("script", ["demo", "test", "bench"])
def test_help_needs_no_environment(script, tmp_path):
    done = subprocess.run(
        [ROOT / "scripts" / script, "--help"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 0
    assert len(done.stdout) > 80
