"""One device, eight devices and two processes give the same numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

from jaxemb import train
from jaxemb.analysis import cost
from jaxemb.errors import InputError
from jaxemb.eval import intervals
from tests.train import small


def run(mesh, mode="jit", steps=10, **options):
    step = train.data_parallel(small.step(), mesh, mode=mode, **options)
    state, batches = step.place(small.state()), small.batches()
    losses = []
    for number in range(steps):
        state, metrics = step(state, batches(number))
        losses.append(float(jax.block_until_ready(metrics["loss"])))
    return jax.device_get(state), losses


@pytest.fixture(scope="module")
def alone():
    return run(train.make_mesh(jax.devices()[:1]))


@pytest.mark.parametrize(
    "options", [{}, {"mode": "pmap"}, {"shard_rows": ["classify/kernel"]}]
)
def test_eight_devices_equal_one(mesh, alone, options):
    state, losses = run(mesh, **options)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5, rtol=0),
        state.params,
        alone[0].params,
    )
    np.testing.assert_allclose(losses, alone[1], atol=1e-5, rtol=0)


def test_over_a_whole_run_eight_devices_are_one_more_seed(mesh, tmp_path):
    """Rounding makes long runs drift apart, by less than another seed would."""

    def accuracy(seed, mesh, mode):
        folder = tmp_path / f"{seed}-{mesh.size}-{mode}"
        step = train.data_parallel(small.step(), mesh, mode=mode)
        train.fit(
            small.state(seed),
            step,
            small.batches(seed=seed),
            120,
            folder,
            log_every=40,
            progress=False,
        )
        return train.read_metrics(folder)[-1]["train/accuracy"]

    one = train.make_mesh(jax.devices()[:1])
    seeds = intervals.t_interval([accuracy(seed, one, "jit") for seed in range(4)])
    half_width = seeds.mean - seeds.low
    for mode in ("jit", "pmap"):
        drift = abs(accuracy(0, mesh, mode) - accuracy(0, one, "jit"))
        assert drift <= half_width


def test_rows_are_spread_over_the_devices(mesh):
    step = train.data_parallel(small.step(), mesh, shard_rows=["classify/kernel"])
    state, _ = step(step.place(small.state()), small.batches()(0))
    kernel = state.params["classify"]["kernel"]
    assert {s.data.shape for s in kernel.addressable_shards} == {(1, 2)}
    moment = state.opt_state[0].mu["classify"]["kernel"]
    assert {s.data.shape for s in moment.addressable_shards} == {(1, 2)}


def test_a_table_is_made_where_its_rows_are(mesh):
    """No device, and no process, ever holds more of it than its share."""
    rows, dim = 1 << 14, 64

    def make():
        table = jax.random.uniform(jax.random.key(0), (rows, dim))
        assert isinstance(table, jax.core.Tracer)
        return train.State(
            step=jnp.zeros([], jnp.int32),
            key=jax.random.key_data(jax.random.key(1)),
            params={"table": table},
            opt_state=(),
            frozen={},
        )

    step = train.data_parallel(lambda s, b: (s, {}), mesh, shard_rows=["table"])
    table = step.place(make).params["table"]
    assert {shard.data.shape for shard in table.addressable_shards} == {
        (rows // 8, dim)
    }
    np.testing.assert_array_equal(
        table, jax.random.uniform(jax.random.key(0), (rows, dim))
    )
    shardings = step._state_shardings(jax.eval_shape(make))
    program = jax.jit(make, out_shardings=shardings).lower().compile()
    assert program.memory_analysis().temp_size_in_bytes < 4 * rows * dim / 2


def test_rows_that_cannot_be_spread_are_named(mesh):
    step = train.data_parallel(small.step(), mesh, shard_rows=["embed/embedding"])
    with pytest.raises(InputError, match="20 rows of .*embed/embedding cannot be"):
        step.place(small.state())


@pytest.mark.parametrize("mode", ["jit", "pmap"])
def test_accumulation_on_eight_devices_equals_one(mesh, mode):
    """Without dropout, whose draws depend on how a batch is parted."""

    def loss_fn(variables, batch, key):
        logits = small.Tiny().apply(variables, batch["tokens"], deterministic=True)
        return jnp.mean(jnp.square(logits)), {}

    def after(mesh, mode, **options):
        step = train.make_step(loss_fn, small.TX, **options)
        step = train.data_parallel(step, mesh, mode=mode)
        state = step.place(small.state())
        for number in range(3):
            state, metrics = step(state, small.batches(32)(number))
            jax.block_until_ready(metrics)
        return jax.device_get(state.params)

    one = train.make_mesh(jax.devices()[:1])
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5, rtol=0),
        after(mesh, mode, accumulate=4),
        after(one, "jit"),
    )


@pytest.mark.parametrize("mode", ["jit", "pmap"])
def test_seeds_on_eight_devices_equal_seeds_on_one(mesh, mode):
    def after(mesh, mode):
        step = train.data_parallel(train.over_seeds(small.step()), mesh, mode=mode)
        seeds = [small.state(seed) for seed in range(2)]
        state = step.place(jax.tree.map(lambda *leaves: jnp.stack(leaves), *seeds))
        for number in range(3):
            state, metrics = step(state, small.batches()(number))
            jax.block_until_ready(metrics)
        return jax.device_get(state.params)

    one = train.make_mesh(jax.devices()[:1])
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5, rtol=0),
        after(mesh, mode),
        after(one, "jit"),
    )


def test_a_state_that_was_placed_is_not_consumed(mesh):
    step = train.data_parallel(small.step(), mesh)
    state = small.state()
    step(step.place(state), small.batches()(0))
    assert np.isfinite(np.asarray(state.params["classify"]["kernel"])).all()


def test_a_batch_that_cannot_be_split_is_named(mesh):
    step = train.data_parallel(small.step(), mesh)
    with pytest.raises(InputError, match="12 examples cannot be split over 8 devices"):
        step(step.place(small.state()), small.batches(12)(0))


@pytest.mark.parametrize("platform", ["tpu", "cuda"])
def test_the_step_lowers_for_accelerators(platform):
    step = train.data_parallel(small.step(), train.make_mesh(jax.devices()[:1]))
    lowered = step.lower(
        step.place(small.state()), small.batches()(0), lowering_platforms=(platform,)
    )
    assert "stablehlo.dot_general" in lowered.as_text()


def test_only_gradients_and_metrics_travel(mesh):
    step = train.data_parallel(small.step(), mesh)
    state = step.place(small.state())
    compiled = step.lower(state, small.batches()(0)).compile()
    # The compiler may transpose a gradient, hence sorted shapes.
    gradients = sorted(sorted(leaf.shape) for leaf in jax.tree.leaves(state.params))
    found = cost.collectives(compiled.as_text())
    assert {one.kind for one in found} == {"all-reduce"}
    moved = sorted(sorted(shape) for one in found for shape in one.shapes)
    assert [shape for shape in moved if shape] == gradients
    assert len([shape for shape in moved if not shape]) <= 2  # loss and accuracy


def test_flops_fall_with_the_number_of_devices():
    def flops(count):
        mesh = train.make_mesh(jax.devices()[:count])
        split = NamedSharding(mesh, PartitionSpec("data"))
        whole = NamedSharding(mesh, PartitionSpec())
        gradient = jax.jit(
            jax.grad(lambda v, b: small.loss_fn(v, b, jax.random.key(0))[0]),
            in_shardings=(whole, split),
            out_shardings=whole,
        )
        lowered = gradient.lower(small.state().variables, small.batches(256)(0))
        return lowered.compile().cost_analysis()["flops"]

    assert 0.9 < 8 * flops(8) / flops(1) < 1.1
