import json

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
import pytest

WORDS = ("<pad>", "not", "good", "bad", "never", "a & b")


def save_checkpoint(run, step, params, frozen=None):
    items = {"params": params, "opt_state": {"mu": jnp.zeros(3)}}
    if frozen is not None:
        items["frozen"] = frozen
    with ocp.CheckpointManager(run.absolute() / "checkpoints") as manager:
        manager.save(
            step,
            args=ocp.args.Composite(
                **{name: ocp.args.StandardSave(tree) for name, tree in items.items()}
            ),
        )
        manager.wait_until_finished()


def write_metrics(run, lines):
    run.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (run / "metrics.jsonl").write_text(text)


@pytest.fixture
def results():
    row = {"metric": "test/accuracy", "published": None, "source": "Table 1, row 4"}
    return {
        "slug": "delta_embedding",
        "preset": "made <up>",
        "config": {"model": {"dim": 8}, "arms": ["fixed", "delta"], "seed": 0},
        "commit": "0123456789abcdef",
        "versions": {"jax": "0.10.2", "flax": None},
        "devices": "8 × cpu",
        "seconds": 3724.2,
        "data": [
            {
                "name": "rt-polarity",
                "kind": "real",
                "source": "local folder",
                "sha256": "ab" * 32,
                "size": 10662,
            }
        ],
        "rows": [
            {
                **row,
                "name": "fixed <script>alert(1)</script>",
                "measured": 76.1234,
                "values": [76.0, 76.2468],
                "interval": [75.5, 76.75],
                "published": 76.66,
            },
            {
                **row,
                "name": "delta",
                "measured": 79.0,
                "values": [79.0],
                "interval": None,
            },
        ],
        "claims": [
            {
                "claim": "delta beats fixed & finetune",
                "verdict": "supported",
                "evidence": "paired difference +0.9 [0.2, 1.6]",
            }
        ],
    }


@pytest.fixture
def run(tmp_path, results):
    """A run of two arms and two folds; fold 0 of delta has a sharded checkpoint.

    As deep as a real one: root/table/arm/fold.
    """
    root = tmp_path / "work"
    for a, arm in enumerate(("fixed", "delta")):
        for fold in range(2):
            lines = [
                {"step": 10 * i, "train/loss": 1 / i + fold / 9 + a}
                for i in range(1, 6)
            ]
            lines += [{"step": 50, "valid/accuracy": 0.7 + 0.1 * a + fold / 99}]
            write_metrics(root / "glove" / arm / f"fold-{fold}", lines)
    (root / "words.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    (root / "results.json").write_text(json.dumps(results))
    rng = np.random.default_rng(0)
    mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    spread = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
    kernel = jax.device_put(jnp.asarray(rng.normal(size=(8, 3)), jnp.float32), spread)
    delta = np.zeros((6, 4), np.float32)
    delta[1] = 2.0
    base = rng.normal(size=(6, 4)).astype(np.float32)
    save_checkpoint(
        root / "glove" / "delta" / "fold-0",
        50,
        {"embed": {"delta": jnp.asarray(delta)}, "head": {"kernel": kernel}},
        {"embed": {"base": jnp.asarray(base)}},
    )
    np.savez(root / "expected.npz", base=base, delta=delta, kernel=np.asarray(kernel))
    return root
