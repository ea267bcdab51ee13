"""Every objective against loops of autograd, differences, and its own limits."""

import dataclasses
import inspect
import re
import textwrap

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy import special

from jaxemb import losses, optim, perturb, train
from jaxemb.errors import InputError
from jaxemb.perturb.ascent import first_change
from tests.perturb import models

KEY = jax.random.key(11)
MASK = jnp.asarray(models.MASK)
ASCENT = perturb.Ascent(steps=2, epsilon=0.05, eta=0.04, sigma=0.02)
OBJECTIVES = {
    "plain": perturb.plain(),
    "fgm": perturb.fgm(0.1),
    "pgd": perturb.pgd(steps=2, epsilon=0.05, eta=0.04),
    "vat": perturb.vat(0.5, xi=0.1, steps=2),
    "freelb": perturb.freelb(steps=3, epsilon=0.3, eta=0.2, sigma=0.1),
    "adv": perturb.adv(ASCENT),
    "smart": perturb.smart(ASCENT, alpha=0.7),
    "alice": perturb.alice(ASCENT, alpha=0.7),
}


def loss_of_params(objective, key=KEY, **more):
    def loss(params, e=models.E):
        return perturb.perturbed_loss(
            objective,
            models.logits_of(params),
            models.loss_of,
            jnp.asarray(e),
            MASK,
            key,
            **more,
        )

    return loss


def value_and_gradient(objective, **more):
    run = jax.jit(jax.value_and_grad(loss_of_params(objective, **more), has_aux=True))
    (value, terms), gradient = run(models.jax_params())
    return float(value), terms, jax.tree.map(np.asarray, gradient)


def by_torch(objective, key=KEY):
    """The whole objective in loops of autograd."""
    torch = pytest.importorskip("torch", reason="needs the extra 'oracles'")
    functional = torch.nn.functional
    params = models.torch_params(torch)
    e, labels = torch.tensor(models.E), torch.tensor(models.LABELS)
    _, labelled_key, virtual_key, _ = jax.random.split(key, 4)

    def f(x):
        return models.torch_logits(torch, params, x)

    def cross(x):
        return functional.cross_entropy(f(x), labels, reduction="none")

    def kl(a, b):
        a, b = (functional.log_softmax(x, -1) for x in (a, b))
        return (a.exp() * (a - b)).sum(-1)

    def start(ascent, key):
        return torch.tensor(np.array(first_change(jnp.asarray(e), MASK, key, ascent)))

    def step(d, ascent, loss):
        d = d.detach().requires_grad_()
        (g,) = torch.autograd.grad(loss(e + d).sum(), d)
        if ascent.norm == "sign":
            return (d + ascent.eta * g.sign()).clamp(-ascent.epsilon, ascent.epsilon)
        if ascent.norm == "inf":
            g = g / (g.abs().amax(-1, keepdim=True) + ascent.guard)
            g = torch.nan_to_num(g)
            return (d + ascent.eta * g).clamp(-ascent.epsilon, ascent.epsilon)
        g = g / g.square().sum((1, 2), keepdim=True).sqrt()
        if ascent.projection == "step_only":
            return ascent.eta * g
        d = d + ascent.eta * g
        size = d.square().sum((1, 2), keepdim=True).sqrt()
        return d * torch.clamp(ascent.epsilon / size, max=1)

    o = objective
    clean = f(e)
    total = o.clean * functional.cross_entropy(clean, labels)
    if o.labelled:
        d, values = start(o.labelled_ascent, labelled_key), []
        for _ in range(o.labelled_ascent.steps):
            values.append(cross(e + d.detach()).mean())
            d = step(d, o.labelled_ascent, cross)
        last = cross(e + d.detach()).mean()
        total = total + o.labelled * (sum(values) / len(values) if o.average else last)
    if o.virtual:
        fixed, d = clean.detach(), start(o.virtual_ascent, virtual_key)
        for _ in range(o.virtual_ascent.steps):
            d = step(d, o.virtual_ascent, lambda x: kl(fixed, f(x)))
        d = d.detach()
        if o.virtual_ascent.last is not None:
            length = d.square().sum((1, 2), keepdim=True).sqrt()
            d = o.virtual_ascent.last * d / length
        changed = f(e + d)
        if o.divergence == "kl":
            total = total + o.virtual * kl(fixed, changed).mean()
        else:
            both = kl(clean, changed) + kl(changed, clean)
            total = total + o.virtual * both.mean()
    total.backward()
    return total.item(), {k: p.grad.numpy() for k, p in params.items()}


@pytest.mark.parametrize("name", OBJECTIVES)
def test_values_and_gradients_are_those_of_autograd(name):
    value, _, gradient = value_and_gradient(OBJECTIVES[name])
    wanted, wanted_gradient = by_torch(OBJECTIVES[name])
    assert value == pytest.approx(wanted, rel=1e-4)
    for key, own in gradient.items():
        np.testing.assert_allclose(own, wanted_gradient[key], rtol=2e-3, atol=1e-5)


def test_without_a_ball_every_objective_is_the_plain_one():
    none = perturb.Ascent(epsilon=0.0, eta=0.1, sigma=0.1)
    still = perturb.Ascent(steps=0, sigma=0.0)
    plain, _, wanted = value_and_gradient(perturb.plain())
    for ascent in (none, still):
        for objective in (perturb.adv, perturb.smart, perturb.alice):
            value, terms, gradient = value_and_gradient(objective(ascent))
            assert value == pytest.approx(plain, abs=1e-6)
            assert float(terms.get("virtual", 0.0)) < 1e-6
            for key in gradient:
                np.testing.assert_allclose(gradient[key], wanted[key], atol=1e-6)


@pytest.mark.parametrize("name", ["adv", "alice"])
def test_the_gradient_is_that_of_differences_with_the_changes_frozen(name):
    params, e = models.jax_params(), jnp.asarray(models.E)
    rng = np.random.default_rng(1)
    toward = {k: rng.normal(size=v.shape) for k, v in models.PARAMS.items()}
    _, labelled_key, virtual_key, _ = jax.random.split(KEY, 4)
    clean = models.logits(params, e)
    inner = {
        "labelled": lambda x: models.loss_of(models.logits(params, x)),
        "virtual": lambda x: losses.distances.kl_softmax(
            clean, models.logits(params, x)
        ),
    }
    keys = {"labelled": labelled_key, "virtual": virtual_key}
    changed = {
        term: np.asarray(e + perturb.ascend(inner[term], e, MASK, key, ASCENT), float)
        for term, key in keys.items()
    }

    def frozen(t):
        """The loss in 64 bits, parameters moved and the changes as they were."""
        moved = {k: models.PARAMS[k].astype(float) + t * toward[k] for k in toward}

        def log_p(x):
            states = np.tanh(x @ moved["inner"]) * models.MASK[..., None]
            pooled = states.sum(1) / models.MASK.sum(1, keepdims=True)
            return special.log_softmax(pooled @ moved["outer"], axis=-1)

        value = -log_p(changed["labelled"])[np.arange(3), models.LABELS].mean()
        if name == "alice":  # both sides of the divergence move
            p, q = log_p(np.asarray(models.E, float)), log_p(changed["virtual"])
            apart = ((np.exp(p) - np.exp(q)) * (p - q)).sum(-1)
            value += OBJECTIVES["alice"].virtual * apart.mean()
        return value

    _, _, gradient = value_and_gradient(OBJECTIVES[name])
    slope = sum(float(np.sum(gradient[k] * toward[k])) for k in toward)
    wanted = (frozen(1e-5) - frozen(-1e-5)) / 2e-5
    assert slope == pytest.approx(wanted, rel=1e-4)  # the slope is of 32 bits


def test_alpha_is_linear_and_0_is_adv():
    of = lambda alpha: value_and_gradient(perturb.alice(ASCENT, alpha=alpha))[0]
    adv = value_and_gradient(perturb.adv(ASCENT))[0]
    values = [of(alpha) for alpha in (0.0, 1.0, 2.0)]
    assert values[0] == adv
    assert values[2] - values[1] == pytest.approx(values[1] - values[0], rel=1e-4)
    assert values[1] > values[0]
    more = value_and_gradient(perturb.alice(ASCENT, alpha=0.0, clean=0.5))[0]
    plain = value_and_gradient(perturb.plain())[0]
    assert more == pytest.approx(adv + 0.5 * plain, rel=1e-5)


def passes(objective):
    """Matrix products of the compiled gradient: forwards, to inputs, to weights.

    The encoder is one product, (2 x 3, 5) with (5, 7); the three kinds of product that
    its passes consist of have 42, 30 and 35 results.
    """
    mask = jnp.ones((2, 3), bool)
    outer = jnp.asarray(np.random.default_rng(0).normal(size=(7, 2)), jnp.float32)

    def loss(weights, e):
        def logits_of(x, key):
            return jnp.mean(jnp.tanh(x @ weights), axis=1) @ outer

        def loss_of(logits):
            return losses.softmax_cross_entropy(logits, jnp.array([0, 1]))

        return perturb.perturbed_loss(objective, logits_of, loss_of, e, mask, KEY)[0]

    arguments = jnp.ones((5, 7)), jnp.ones((2, 3, 5))
    run = jax.jit(jax.grad(loss, argnums=(0, 1)))
    text = run.lower(*arguments).compile().as_text()
    shapes = re.findall(r"= f32\[([\d,]+)\][^=]*? dot\(", text)
    sizes = [int(np.prod([int(n) for n in shape.split(",")])) for shape in shapes]
    return tuple(sizes.count(size) for size in (42, 30, 35))


@pytest.mark.parametrize(
    ("objective", "wanted"),
    [
        # forwards; backwards to the embeddings, of which those to weights too
        (perturb.plain(), (1, 1, 1)),
        (perturb.adv(), (2, 2, 1)),
        (perturb.smart(), (3, 3, 2)),
        (perturb.alice(), (5, 5, 3)),
        (dataclasses.replace(perturb.alice(), detach=True), (5, 4, 2)),
        (perturb.freelb(steps=3), (3, 5, 3)),
    ],
)
def test_the_encoder_is_called_as_often_as_told(objective, wanted):
    assert passes(objective) == wanted


def test_what_stands_at_padding_changes_nothing():
    junk = np.where(models.MASK[..., None], models.E, 1e3).astype(np.float32)
    for name in ("alice", "vat", "freelb"):
        run = jax.jit(loss_of_params(OBJECTIVES[name]))
        first, second = (
            float(run(models.jax_params(), e)[0]) for e in (models.E, junk)
        )
        assert first == second


def test_dropout_is_the_same_in_all_passes_or_its_own():
    seen = []

    def logits_of(x, key):
        seen.append(key)
        return models.logits(models.jax_params(), x)

    def keys(objective):
        seen.clear()
        perturb.perturbed_loss(
            objective, logits_of, models.loss_of, jnp.asarray(models.E), MASK, KEY
        )
        return {tuple(np.asarray(jax.random.key_data(key))) for key in seen}

    assert len(keys(perturb.alice())) == 1
    assert len(keys(dataclasses.replace(perturb.alice(), same_dropout=False))) == 3


def test_the_proximal_term_is_the_divergence_from_averaged_parameters():
    average = {k: v + 0.1 for k, v in models.PARAMS.items()}
    e = jnp.asarray(models.E)
    reference = models.logits(jax.tree.map(jnp.asarray, average), e)
    objective = perturb.smart(ASCENT, proximal=0.5)
    value, terms, _ = value_and_gradient(objective, reference=lambda key: reference)
    p = special.softmax(np.asarray(models.logits(models.jax_params(), e), float), -1)
    q = special.softmax(np.asarray(reference, float), -1)
    wanted = (special.rel_entr(p, q) + special.rel_entr(q, p)).sum(-1).mean()
    assert float(terms["proximal"]) == pytest.approx(wanted, rel=1e-4)
    without = value_and_gradient(perturb.smart(ASCENT))[0]
    assert value == pytest.approx(without + 0.5 * wanted, rel=1e-4)
    with pytest.raises(InputError, match="expected `reference`"):
        value_and_gradient(objective)


def test_mistakes_are_named():
    with pytest.raises(InputError, match="Objective.divergence is 'js'"):
        perturb.Objective(divergence="js")
    with pytest.raises(InputError, match="without steps"):
        value_and_gradient(perturb.freelb(steps=0))


def test_attack_and_line_tell_what_a_change_does():
    params = models.jax_params()
    e, labels = jnp.asarray(models.E), jnp.asarray(models.LABELS)
    ascent = perturb.Ascent(steps=3, epsilon=1.0, eta=0.5, sigma=0.1)
    run = jax.jit(
        lambda epsilon: perturb.attack(
            models.logits_of(params), labels, e, MASK, KEY, epsilon, ascent
        )
    )
    none, some, much = (run(epsilon) for epsilon in (0.0, 0.1, 0.5))
    clean = models.loss_of(models.logits(params, e))
    np.testing.assert_allclose(none.loss, clean, rtol=1e-6)
    assert not np.abs(none.divergence).max() > 1e-6
    assert none.loss.sum() < some.loss.sum() < much.loss.sum()
    assert none.ratio.max() == 0 < some.ratio.max() < much.ratio.max()
    direction = jnp.ones_like(e)
    points = jnp.array([0.0, 0.5])
    line = perturb.along(models.logits_of(params), e, direction, points, KEY)
    np.testing.assert_allclose(line[0], models.logits(params, e), rtol=1e-5)
    np.testing.assert_allclose(line[1], models.logits(params, e + 0.5), rtol=1e-5)


@pytest.mark.slow
def test_noisy_labels_hurt_less_under_perturbation():
    """Card, check 11: two layers over embedded tokens, a tenth of labels wrong."""
    vocab, length, dim, seeds = 40, 6, 8, 20
    rng = np.random.default_rng(0)
    polarity = rng.normal(size=vocab)

    def draw(count, noise):
        ids = rng.integers(0, vocab, (seeds, count, length))
        labels = (polarity[ids].sum(-1) > 0).astype(np.int32)
        return ids, np.where(rng.random(labels.shape) < noise, 1 - labels, labels)

    training, test = draw(100, 0.1), draw(500, 0.0)
    mask = jnp.ones((100, length), bool)
    attack = perturb.Ascent(steps=3, epsilon=0.05, eta=0.025, sigma=0.0125)
    ascent = perturb.Ascent(epsilon=0.05, eta=0.05, sigma=0.0125)

    def logits(params, x):
        hidden = jnp.tanh(jnp.mean(x, axis=1) @ params["inner"])
        return hidden @ params["outer"]

    def run(objective, seed, ids, labels, test_ids, test_labels):
        keys = jax.random.split(jax.random.key(seed), 4)
        shapes = {"table": (vocab, dim), "inner": (dim, 32), "outer": (32, 2)}
        scales = {"table": 1.0, "inner": dim**-0.5, "outer": 32**-0.5}
        params = {
            name: scales[name] * jax.random.normal(key, shape)
            for key, (name, shape) in zip(keys, shapes.items(), strict=False)
        }

        def loss(params, key):
            return perturb.perturbed_loss(
                objective,
                lambda x, _: logits(params, x),
                lambda found: losses.softmax_cross_entropy(found, labels),
                params["table"][ids],
                mask,
                key,
            )[0]

        def step(params, number):
            slope = jax.grad(loss)(params, jax.random.fold_in(keys[3], number))
            return jax.tree.map(lambda p, g: p - 0.5 * g, params, slope), None

        params = jax.lax.scan(step, params, jnp.arange(300))[0]
        found = perturb.attack(
            lambda x, _: logits(params, x),
            test_labels,
            params["table"][test_ids],
            jnp.ones(test_ids.shape, bool),
            keys[3],
            attack.epsilon,
            attack,
        )
        clean = logits(params, params["table"][test_ids])
        return found.divergence.mean(), (clean.argmax(-1) == test_labels).mean()

    found = {}
    for name, objective in (
        ("plain", perturb.plain()),
        ("adv", perturb.adv(ascent)),
        ("smart", perturb.smart(ascent)),
        ("alice", perturb.alice(ascent)),
    ):
        every = jax.jit(jax.vmap(lambda *a, o=objective: run(o, *a)))
        apart, right = every(jnp.arange(seeds), *map(jnp.asarray, (*training, *test)))
        found[name] = float(apart.mean()), float(right.mean())
    for name in ("adv", "smart", "alice"):
        assert found[name][0] < found["plain"][0], found
    assert found["alice"][1] >= found["plain"][1], found


def test_the_example_of_the_docstring_runs():
    text = inspect.getdoc(perturb) or ""
    blocks = re.findall(r"(?:^    .*\n|^\n)+", text + "\n", re.M)
    names: dict = {}
    code = "\n".join(textwrap.dedent(block) for block in blocks)
    exec(compile(code, "docstring", "exec"), names)
    rng = np.random.default_rng(0)
    labels = np.arange(8) % 2
    vectors = rng.normal(size=(8, 4, 5)) + (2 * labels - 1)[:, None, None]
    batch = {
        "vectors": jnp.asarray(vectors, jnp.float32),
        "mask": jnp.ones((8, 4), bool),
        "labels": jnp.asarray(labels),
    }
    model = names["model"]
    inputs = batch["vectors"], batch["mask"]
    variables = model.init(jax.random.key(0), *inputs, deterministic=True)
    state = train.State.create(variables, optax.adam(1e-2), jax.random.key(1))
    values = []
    for _ in range(20):
        state, metrics = names["step"](state, batch)
        values.append(float(metrics["loss"]))
    assert values[-1] < 0.5 * values[0]
    assert float(metrics["virtual"]) >= 0
    assert 0 < float(metrics["labelled_ratio"]) < 0.1
    _check_the_composed_example(names, variables, batch)


def _check_the_composed_example(names, variables, batch):
    """Distilled, pruned and perturbed: it learns, half of each kernel is 0."""
    batch = {**batch, "teacher": 3 * jax.nn.one_hot(batch["labels"], 2)}
    state = train.State.create(variables, names["tx"], jax.random.key(1))
    values = []
    for _ in range(20):
        state, metrics = names["composed"](state, batch)
        values.append(float(metrics["loss"]))
    assert values[-1] < 0.5 * values[0]
    assert set(metrics) >= {"clean", "labelled"}
    kernels = optim.masks_of(state.opt_state, state.params)
    assert kernels
    for path, leaf in jax.tree_util.tree_leaves_with_path(state.params):
        zeros = float(jnp.mean(leaf == 0))
        if optim.path_name(path) in kernels:
            assert zeros == pytest.approx(0.5, abs=0.05)
