"""PyTorch losses: value and gradient equal to the objectives, gradients checked by finite differences."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from apexrank.errors import InputError  # noqa: E402
from apexrank.integrations.torch import (  # noqa: E402
    CrucialPairsLoss,
    InfinitePushLoss,
    ListwiseLoss,
    PClassificationLoss,
    PushLoss,
    RetargetLoss,
    SwapLikelihoodLoss,
    UnknownLinkLoss,
)
from apexrank.objectives import (  # noqa: E402
    CrucialPairs,
    InfinitePush,
    PClassification,
    Push,
    Retarget,
    UnknownLink,
)
from apexrank.objectives.swaps import order_likelihood, telling_lists  # noqa: E402
from apexrank.prices import Power  # noqa: E402
from apexrank.rankers.listwise import ListwiseRanker  # noqa: E402
from apexrank.submodular import set_function  # noqa: E402
from apexrank.validation import segment  # noqa: E402

N = 40
LISTWISE = ("listnet", "pointwise", "rank_cosine", "ndcg_consistent")


def push(target, groups, weight, **options):
    return Push(target > 0, sample_weight=weight, groups=groups, **options)


def listwise(kind, **options):
    def objective(target, groups, weight):
        return ListwiseRanker(kind, **options)._objective(target.astype(float), weight, groups)

    return objective


BINARY = {
    "push": (PushLoss(p=3.3), lambda t, g, w: push(t, g, w, price=Power(3.3))),
    "push-identity": (PushLoss(price="identity"), lambda t, g, w: push(t, g, w, price="identity")),
    "push-bottom": (PushLoss(side="bottom"), lambda t, g, w: push(t, g, w, side="bottom")),
    "push-both": (
        PushLoss(p=2, side="both", balance=0.3),
        lambda t, g, w: push(t, g, w, price=Power(2), side="both", balance=0.3),
    ),
    "push-logistic": (PushLoss(loss="logistic"), lambda t, g, w: push(t, g, w, loss="logistic")),
    "push-hinge": (
        PushLoss(p=2, loss="hinge"),
        lambda t, g, w: push(t, g, w, loss="hinge", price=Power(2)),
    ),
    "push-squared-hinge": (
        PushLoss(loss="squared_hinge", side="both"),
        lambda t, g, w: push(t, g, w, loss="squared_hinge", side="both"),
    ),
    "push-log1p": (
        PushLoss(price="log1p", side="bottom"),
        lambda t, g, w: push(t, g, w, price="log1p", side="bottom"),
    ),
    "push-exponential-price": (
        PushLoss(price="exponential", loss="logistic"),
        lambda t, g, w: push(t, g, w, price="exponential", loss="logistic"),
    ),
    "p-classification": (
        PClassificationLoss(p=2, side="bottom"),
        lambda t, g, w: PClassification(push(t, g, w, price=Power(2), side="bottom")),
    ),
    **{
        f"infinite-{loss}": (
            InfinitePushLoss(loss=loss, beta=5.0),
            lambda t, g, w, loss=loss: InfinitePush(t > 0, loss=loss, beta=5.0, sample_weight=w, groups=g),
        )
        for loss in ("exponential", "logistic", "hinge", "squared_hinge")
    },
}
GRADED = {
    **{
        f"crucial-{loss}": (
            CrucialPairsLoss(p=2, loss=loss),
            lambda t, g, w, loss=loss: CrucialPairs(t, loss=loss, price=Power(2), sample_weight=w, groups=g),
        )
        for loss in ("exponential", "logistic")
    },
    **{
        f"retarget-{name}": (
            RetargetLoss(name, margin=0.5, order=order, normalize=True, joint_convexity=joint),
            lambda t, g, w, name=name, order=order, joint=joint: Retarget(
                t,
                groups=g,
                divergence=name,
                margin=0.5,
                order=order,
                normalize=True,
                joint_convexity=joint,
                sample_weight=w,
            ),
        )
        for name, order, joint in (
            ("squared", "hidden", False),
            ("kl", "blocks", False),
            ("i-divergence", "hidden", True),
        )
    },
    "unknown-link": (
        UnknownLinkLoss(0.7, normalize=True),
        lambda t, g, w: UnknownLink(t, groups=g, strong_convexity=0.7, normalize=True, sample_weight=w),
    ),
    **{f"listwise-{kind}": (ListwiseLoss(kind), listwise(kind)) for kind in LISTWISE},
    **{
        f"listwise-{kind}-normalized": (
            ListwiseLoss(kind, normalize=True),
            listwise(kind, normalize=True),
        )
        for kind in ("listnet", "pointwise")
    },
    **{
        f"listwise-{kind}-poisson": (
            ListwiseLoss(kind, divergence="i-divergence"),
            listwise(kind, divergence="i-divergence"),
        )
        for kind in ("pointwise", "ndcg_consistent")
    },
}
CASES = {**BINARY, **GRADED}
every_loss = pytest.mark.parametrize("name", CASES)
every_setting = pytest.mark.parametrize("grouped", [False, True], ids=["one-list", "groups"])


def data(name, seed=0):
    rng = np.random.default_rng(seed)
    target = rng.integers(0, 2, N) if name in BINARY else rng.integers(0, 4, N)
    return rng.normal(size=N), target, rng.integers(0, 5, N), rng.integers(0, 3, N).astype(float)


def tensors(*arrays):
    return [None if array is None else torch.from_numpy(array) for array in arrays]


@every_loss
@every_setting
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_value_and_gradient_are_those_of_the_objective(name, grouped, weighted):
    loss, objective = CASES[name]
    scores, target, groups, weight = data(name)
    groups, weight = groups if grouped else None, weight if weighted else None
    value, gradient = objective(target, groups, weight).value_and_grad(scores)
    s = torch.from_numpy(scores).requires_grad_()
    found = loss(s, *tensors(target, groups, weight))
    found.backward()
    assert found.shape == ()
    np.testing.assert_allclose(found.item(), value, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(s.grad.numpy(), gradient, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["push", "push-both", "p-classification", "listwise-listnet"])
def test_native_losses_have_second_derivatives(name):
    loss, _ = CASES[name]
    scores, target, groups, _ = data(name, seed=2)
    t, g = tensors(target, groups)
    s = torch.from_numpy(scores[:12]).requires_grad_()
    assert torch.autograd.gradgradcheck(lambda s: loss(s, t[:12], g[:12] % 2), (s,))


def test_listed_pairs():
    rng = np.random.default_rng(0)
    upper, lower, weight = rng.integers(0, 5, 20), rng.integers(5, 10, 20), rng.random(20)
    scores = rng.normal(size=10)
    value, gradient = CrucialPairs(pairs=(upper, lower, weight), n=10, price=Power(2)).value_and_grad(scores)
    s, pairs = torch.from_numpy(scores).requires_grad_(), tuple(tensors(upper, lower, weight))
    found = CrucialPairsLoss(p=2)(s, pairs)
    found.backward()
    assert found.item() == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(s.grad.numpy(), gradient, rtol=1e-12)
    assert torch.autograd.gradcheck(lambda s: CrucialPairsLoss(p=2)(s, pairs), (s,))


@pytest.mark.parametrize("f", ["sqrt", "log"])
def test_swap_likelihood(f):
    scores, target, groups, _ = data("retarget-squared")
    rows, lists = telling_lists(target.astype(float), segment(groups, N))
    value, gradient = order_likelihood(target[rows].astype(float), set_function(f), lists).value_and_grad(
        scores[rows]
    )
    s, t, g = torch.from_numpy(scores).requires_grad_(), *tensors(target, groups)
    found = SwapLikelihoodLoss(f)(s, t, g)
    found.backward()
    assert found.item() == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(s.grad.numpy()[rows], gradient, rtol=1e-12)
    assert torch.autograd.gradcheck(lambda s: SwapLikelihoodLoss(f)(s, t, g), (s,))


def test_large_scores_do_not_overflow():
    s = torch.tensor([-500.0, 900.0, 100.0], requires_grad=True)
    value = PushLoss(p=64)(s, [1, 0, 0])
    value.backward()
    assert value.item() == pytest.approx(1400.0)
    assert s.grad.tolist() == [-1.0, 1.0, 0.0]


def test_a_column_of_scores_and_single_precision():
    scores, target, *_ = data("push")
    flat = torch.from_numpy(scores).float().requires_grad_()
    column = flat.detach()[:, None].clone().requires_grad_()
    for loss in (PushLoss(), PushLoss(loss="logistic")):
        flat.grad = column.grad = None
        first, second = loss(flat, target), loss(column, target)
        first.backward()
        second.backward()
        assert first.dtype == torch.float32
        assert first.item() == second.item()
        assert torch.equal(flat.grad, column.grad[:, 0])


def test_groups_may_be_names():
    scores, target, groups, _ = data("push")
    names = np.array(list("abcde"))[groups]
    s = torch.from_numpy(scores)
    assert PushLoss()(s, target, names).item() == PushLoss()(s, target, torch.from_numpy(groups)).item()


SWAPS = {"swaps": (SwapLikelihoodLoss(), None)}


@pytest.mark.parametrize("bad", [np.nan, np.inf], ids=["missing", "infinite"])
@pytest.mark.parametrize("kind", [torch.from_numpy, np.asarray], ids=["tensor", "numpy"])
@pytest.mark.parametrize("name", {**CASES, **SWAPS})
def test_targets_that_are_no_numbers_are_refused(name, kind, bad):
    loss, _ = {**CASES, **SWAPS}[name]
    scores, target, groups, _ = data(name)
    target = target.astype(float)
    target[3] = bad
    with pytest.raises(InputError, match="target is missing or infinite in row 3: fill or drop it"):
        loss(torch.from_numpy(scores), kind(target), groups)


@pytest.mark.parametrize("half", [torch.bfloat16, torch.float16], ids=["bfloat16", "float16"])
@pytest.mark.parametrize("name", {**CASES, **SWAPS})
def test_half_precision_is_computed_in_full(name, half):
    """Half-precision sums would lose all digits; value and gradient equal those in full precision."""
    loss, _ = {**CASES, **SWAPS}[name]
    scores, target, groups, _ = data(name)
    short = torch.from_numpy(scores).to(half).requires_grad_()
    exact = short.detach().double().requires_grad_()
    found, wanted = (loss(s, torch.from_numpy(target).to(half), groups) for s in (short, exact))
    (1024 * found).backward()  # as a scaler of gradients does
    (1024 * wanted).backward()
    assert found.dtype == torch.float32
    assert found.item() == pytest.approx(wanted.item(), rel=1e-5)
    assert short.grad.dtype == half
    share = torch.finfo(half).eps
    np.testing.assert_allclose(
        short.grad.double().numpy(),
        exact.grad.numpy(),
        rtol=share,
        atol=share * exact.grad.abs().max().item(),
    )


@pytest.mark.parametrize("name", ["push", "retarget-squared", "listwise-listnet"])
def test_losses_under_autocast(name):
    loss, _ = CASES[name]
    _, target, groups, _ = data(name)
    torch.manual_seed(0)
    layer, X = torch.nn.Linear(3, 1), torch.randn(N, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        scores = layer(X)
        value = loss(scores, target, groups)
    value.backward()
    assert scores.dtype == torch.bfloat16
    assert value.item() == pytest.approx(loss(scores.detach().double(), target, groups).item(), rel=1e-5)
    assert layer.weight.grad.abs().max() > 0


def test_labels_keep_their_precision():
    s, tiny = torch.zeros(2), np.array([1e-60, 0.0])  # above 0 in double precision only
    assert PushLoss()(s, tiny).item() == PushLoss()(s, torch.from_numpy(tiny)).item() == 0.0


def test_half_precision_counts_more_than_a_few_rows():
    n = 5000
    target = torch.arange(n) % 2
    found = PushLoss(p=1)(torch.zeros(n, dtype=torch.bfloat16), target)
    assert found.item() == pytest.approx(2 * np.log(n / 2), rel=1e-5)


@pytest.mark.parametrize("name", ["push", "push-logistic", "retarget-squared", "listwise-listnet"])
def test_columns_of_a_table(name):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    loss, _ = CASES[name]
    scores, target, groups, weight = data(name)
    index = np.arange(N)[::-1] + 100  # which says nothing
    series = [pandas.Series(values, index=index) for values in (target, groups, weight)]
    s = torch.from_numpy(scores)
    wanted = loss(s, *tensors(target, groups, weight)).item()
    assert loss(s, *series).item() == wanted
    assert loss(s, series[0].astype("Int64"), *series[1:]).item() == wanted
    frozen = [values.copy() for values in (target, groups, weight)]
    for values in frozen:
        values.flags.writeable = False
    assert loss(s, *frozen).item() == wanted
    assert loss(s.flip(0), target[::-1], groups[::-1], weight[::-1]).item() == pytest.approx(
        wanted, rel=1e-12
    )


def batch(name, seed=0):
    """Padded scores, targets, weights and mask of six queries; padding holds values that no loss may read."""
    rng = np.random.default_rng(seed)
    sizes = np.array([7, 1, 12, 3, 9, 5])
    mask = np.arange(12) < sizes[:, None]
    scores = np.where(mask, rng.normal(size=mask.shape), np.nan)
    target = np.where(mask, rng.integers(0, 2 if name in BINARY else 4, mask.shape), -1)
    target[:, 0] = target[:, 0].clip(1)  # both classes, except in the query of one document
    target[[0, 2, 3, 4, 5], 1] = 0
    weight = np.where(mask, rng.integers(1, 3, mask.shape), -9.0)
    return scores, target, weight, mask


@pytest.mark.parametrize("name", {**CASES, **SWAPS})
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("reduction", ["objective", "mean"])
def test_a_padded_batch_equals_flat_rows(name, weighted, reduction):
    if weighted and name in SWAPS:
        pytest.skip("SwapLikelihoodLoss takes no weights")
    loss = copy.deepcopy({**CASES, **SWAPS}[name][0])
    loss.reduction = reduction
    scores, target, weight, mask = batch(name)
    padded_scores = torch.tensor(scores, requires_grad=True)
    value = loss(padded_scores, *tensors(target), None, weight if weighted else None, torch.from_numpy(mask))
    value.backward()
    flat = torch.tensor(scores[mask], requires_grad=True)
    queries = np.nonzero(mask)[0]
    expected = loss(flat, target[mask], queries, weight[mask] if weighted else None)
    expected.backward()
    assert value.item() == pytest.approx(expected.item(), rel=1e-12)
    np.testing.assert_allclose(padded_scores.grad.numpy()[mask], flat.grad.numpy(), rtol=1e-12, atol=1e-14)
    assert not padded_scores.grad.numpy()[~mask].any()


@pytest.mark.parametrize("name", {**CASES, **SWAPS})
def test_mean_is_over_queries(name):
    """Queries one by one, except for losses of a batch that are not sums or means over queries."""
    loss = copy.deepcopy({**CASES, **SWAPS}[name][0])
    loss.reduction = "mean"
    scores, target, _, mask = batch(name)
    mask[1] = False  # a query with one document carries no information
    mask[:, 11] = False
    rows = np.flatnonzero(mask.any(axis=1))
    scores, target, mask = scores[rows], target[rows], mask[rows]
    value = loss(torch.from_numpy(scores), target, mask=mask).item()
    if "pointwise" in name or name == "p-classification":
        loss.reduction = "objective"
        whole = loss(torch.from_numpy(scores), target, mask=mask).item()
        assert value == pytest.approx(whole / (len(rows) if "pointwise" in name else 1))
        return
    alone = [loss(torch.from_numpy(s[m]), t[m]).item() for s, t, m in zip(scores, target, mask, strict=True)]
    assert value == pytest.approx(np.mean(alone), rel=1e-9)


def test_a_batch_without_mask_has_no_padding():
    scores = torch.randn(3, 4, dtype=torch.float64)
    target = torch.tensor([[1, 0, 0, 0]] * 3)
    flat = PushLoss()(scores.ravel(), target.ravel(), np.repeat(range(3), 4))
    assert PushLoss()(scores, target).item() == pytest.approx(flat.item())


def padded(loss, **options):
    return loss(torch.zeros(2, 2), torch.tensor([[1, 0], [1, -1]]), **options)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: PushLoss(p=0.5), "`p` must be"),
        (lambda: PushLoss(side="left"), "unknown `side` 'left'"),
        (lambda: PushLoss(loss="logistic", price="log1p"), "not convex"),
        (lambda: ListwiseLoss("lambda"), "unknown `kind` 'lambda'"),
        (lambda: UnknownLinkLoss(0.0), "above 0"),
        (lambda: InfinitePushLoss(beta=0), "`beta` must be above 0"),
        (lambda: PushLoss()(torch.zeros(3), torch.ones(3)), "both classes"),
        (lambda: PushLoss(loss="hinge")(torch.zeros(3), torch.ones(3)), "both classes"),
        (
            lambda: PushLoss()(torch.zeros(3), torch.ones(2)),
            "target needs one value for each of the 3 scores",
        ),
        (
            lambda: PushLoss()(torch.zeros(3, 2), torch.ones(3)),
            r"target needs the shape of the scores, \(3, 2\), got \(3,\)",
        ),
        (lambda: PushLoss()(np.zeros(3), np.ones(3)), "must be a PyTorch tensor"),
        (lambda: PushLoss()(torch.zeros(2), [1, 0], None, [1.0, -1.0]), "finite number >= 0"),
        (lambda: PushLoss()(torch.zeros(2), [1, 0], None, [0.0, 0.0]), "all rows have weight 0"),
        (lambda: ListwiseLoss("rank_cosine")(torch.zeros(2), [0, 0]), "relevance other than 0"),
        (lambda: SwapLikelihoodLoss()(torch.zeros(2), [1, 0], None, [1, 1]), "no `sample_weight`"),
        (lambda: InfinitePushLoss(side="left"), "unknown `side` 'left'"),
        (lambda: InfinitePushLoss(loss="cubic"), "unknown `loss` 'cubic'"),
        (lambda: InfinitePushLoss(balance=-1.0), "`balance` must be"),
        (lambda: RetargetLoss("manhattan"), "unknown `divergence` 'manhattan'"),
        (lambda: RetargetLoss(order="random"), "order must be 'hidden' or 'blocks'"),
        (lambda: RetargetLoss(reward=-1.0), "`reward` must be"),
        (lambda: RetargetLoss(bounds=(1, 0)), "`bounds` must be two numbers in order"),
        (lambda: RetargetLoss("kl", bounds=(0, 1)), "kl takes no bounds"),
        (lambda: RetargetLoss(offsets="cubic"), "unknown `offsets` 'cubic'"),
        (lambda: PushLoss()(torch.zeros(2), ["good", "bad"]), "target must be numbers"),
        (lambda: PushLoss(reduction="sum"), "unknown `reduction` 'sum'"),
        (lambda: padded(PushLoss(), groups=[0, 1]), "leave out groups"),
        (
            lambda: padded(PushLoss(), mask=torch.ones(2, 3)),
            r"mask needs the shape of the scores, \(2, 2\), got",
        ),
        (lambda: padded(PushLoss(), sample_weight=[1, 1]), "sample_weight needs the shape of the scores"),
        (lambda: padded(PushLoss(), mask=torch.zeros(2, 2)), "mask must be True for documents"),
        (lambda: padded(PushLoss(), mask=[[0, 0], [0, 1]]), "invert it"),
        (lambda: PushLoss()(torch.zeros(2), [1, 0], mask=[1, 1]), r"shape \(queries, documents\)"),
        (lambda: CrucialPairsLoss()(torch.zeros(2, 2), ([0], [1])), "pairs are for flat scores"),
    ],
    ids=range(33),
)
def test_faults_are_one_line(call, words):
    with pytest.raises(InputError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_parameters_are_shown():
    assert "p=2" in repr(PushLoss(p=2))


def test_single_precision_keeps_its_digits_in_long_lists():
    rng = np.random.default_rng(0)
    scores, y = rng.normal(size=200_000), torch.from_numpy(rng.random(200_000) < 0.01)
    found = []
    for kind in (torch.float64, torch.float32):
        s = torch.tensor(scores, dtype=kind, requires_grad=True)
        value = PushLoss(p=4)(s, y)
        value.backward()
        found.append((value.item(), s.grad.double()))
    (exact, slope), (rough, rough_slope) = found
    assert rough == pytest.approx(exact, rel=1e-6)
    assert float((rough_slope - slope).abs().max() / slope.abs().max()) < 3e-6
