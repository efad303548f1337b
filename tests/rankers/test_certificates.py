"""Certificates against lower points: the definition, pair by pair, minimised by a solver that shares no code."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from apexrank import CrucialPairsPush, IRPush, LinearRanker, LogisticRanker, PNormPush
from apexrank.penalties import Bounded, ElasticNet, Lasso, NonNegative, Ridge

TIED_LOSS = {"exponential": 1.0, "logistic": np.log(2), "hinge": 1.0, "squared_hinge": 1.0}
CASES = 6  # for each loss and penalty


# ---------------------------------------------------------------- the definition


def log_loss(loss, margin, width):
    """Logarithm of the loss and of minus its slope; the kink of the hinge is rounded over the given width."""
    if loss == "exponential":
        return -margin, -margin
    if loss == "logistic":
        return np.log(np.logaddexp(0, -margin)), log_expit(-margin)
    slack = np.maximum(1 - margin, 0)
    if loss == "squared_hinge":
        return 2 * np.log(slack), np.log(2 * slack)
    if width:
        rounded = np.where(slack < width, slack**2 / (2 * width), slack - width / 2)
        return np.log(rounded), np.log(np.minimum(slack / width, 1))
    return np.log(slack), np.log(np.where(slack > 0, 1.0, 0.0))


def log_sum(exponents):
    """Logarithm of the sum of exponentials, over the first axis."""
    highest = exponents.max(axis=0)
    highest = np.where(np.isfinite(highest), highest, 0.0)
    return highest + np.log(np.exp(exponents - highest).sum(axis=0))


def log_price(price, p, r):
    """Logarithms of g and g' at ``log r``."""
    if price == "exponential":
        return np.exp(r), np.exp(r)
    if price == "log1p":
        return np.log(np.log1p(np.exp(r))), -np.logaddexp(0, r)
    return (p * r, np.log(p) + (p - 1) * r) if p > 1 else (r, np.zeros_like(r))


class Pushes:
    """``Σ_k v_k g(Σ_i u_i ℓ(s_i − s_k))`` over the pairs of a mask, in its convex form, averaged over the groups.

    ``rounding`` above 0 rounds kinks and, for p = ∞, the maximum.
    """

    def __init__(self, relevance, weight, groups, loss, price, p, sides, rounding=0.0):
        self.loss, self.price, self.p, self.rounding = loss, price, p, rounding
        self.weight, self.terms = weight, []
        for q in np.unique(groups):
            rows = np.flatnonzero((groups == q) & (weight > 0))
            above = relevance[rows][:, None] > relevance[rows][None, :]
            if above.any():
                self.terms.append((rows, above))
        self.sides = {sign: factor / len(self.terms) for sign, factor in sides.items()}
        in_log = (loss == "exponential" and price != "log1p") or price == "exponential"
        self.form = "log" if in_log else "root" if price == "power" and p < np.inf else "plain"
        self.unit, self.count = 1.0, 1.0
        if not in_log:
            value = self.value_and_grad(np.zeros(len(weight)))[0]
            self.count = value / TIED_LOSS[loss] if price == "power" else self._priced_weight()
            self.unit = value / self.count

    def _priced_weight(self):
        return sum(
            factor * self.weight[rows[(above if sign > 0 else above.T).any(axis=0)]].sum()
            for sign, factor in self.sides.items()
            for rows, above in self.terms
        )

    def value_and_grad(self, scores):
        value, grad = 0.0, np.zeros(len(scores))
        with np.errstate(all="ignore"):
            for sign, factor in self.sides.items():
                for rows, above in self.terms:
                    own, slope = self._side(
                        sign * scores[rows], above if sign > 0 else above.T, np.log(self.weight[rows])
                    )
                    value += factor * own / self.count
                    grad[rows] += factor * sign * slope / self.count
        return value, grad

    def _side(self, s, above, weight):
        priced = above.any(axis=0)
        log, slope = log_loss(self.loss, s[:, None] - s[None, priced], self.rounding)
        u = np.where(above[:, priced], weight[:, None], -np.inf)
        if self.price == "power" and self.p == np.inf:
            return self._highest(s, above.any(axis=1), priced, weight)
        r = log_sum(log + u)
        price, rise = log_price(self.price, self.p, r)
        risk = log_sum(price + weight[priced])
        order = self.p if self.price == "power" else 1.0
        value, factor = {
            "log": (risk / order, -risk - np.log(order)),
            "root": (np.exp(risk / order), (1 / order - 1) * risk - np.log(order)),
            "plain": (np.exp(risk), 0.0),
        }[self.form]
        pull = np.nan_to_num(np.exp(factor + rise + weight[priced] + u + slope), nan=0.0)
        grad = -pull.sum(axis=1)
        grad[priced] += pull.sum(axis=0)
        return value, grad

    def _highest(self, s, upper, priced, weight):
        """Only the highest of the priced items counts."""
        sharpness = 1 / self.rounding if self.rounding else 1e12
        exponent = sharpness * (s[priced] - s[priced].max())
        top = s[priced].max() + log_sum(exponent) / sharpness * bool(self.rounding)
        log, slope = log_loss(self.loss, s[upper] - top, self.rounding)
        risk = log_sum(log + weight[upper])
        pull = np.exp(slope + weight[upper] - (risk if self.form == "log" else 0.0))
        grad = np.zeros(len(s))
        grad[upper] = -pull
        grad[priced] += pull.sum() * np.exp(exponent - log_sum(exponent))
        return risk if self.form == "log" else np.exp(risk), grad


class InExponent:
    """``(1 + 1/p)·(R/R₀)^{1/(p+1)}``, the form of ``(1/p)·log R`` under a lasso."""

    def __init__(self, push):
        self.push, self.start = push, push.value_and_grad(np.zeros(len(push.weight)))[0]
        p = push.p if push.price == "power" else 1.0
        self.power, self.unit = p / (p + 1), 1 + 1 / p

    def value_and_grad(self, scores):
        value, grad = self.push.value_and_grad(scores)
        ratio = np.exp(self.power * (value - self.start))
        return self.unit * ratio, ratio * grad


class MeanLogLoss:
    """Weighted mean of ``log(1 + e^{∓(s + b)})``, with the best b by bisection."""

    unit = 1.0

    def __init__(self, positive, weight):
        self.sign, self.weight = np.where(positive, 1.0, -1.0), weight / weight.sum()

    def value_and_grad(self, scores):
        low, high = -scores.max() - 40, -scores.min() + 40
        for _ in range(100):
            b = (low + high) / 2
            grad = -self.sign * self.weight * expit(-self.sign * (scores + b))
            low, high = (low, b) if grad.sum() > 0 else (b, high)
        return -float(self.weight @ log_expit(self.sign * (scores + b))), grad


# ---------------------------------------------------------------- a lower point


def lowest(objective, rounded, X, ridge, l1, box, starts):
    """Lowest penalised value that L-BFGS-B finds on ``w = x⁺ − x⁻``, from these starts, and its coefficients."""
    d, spread = X.shape[1], np.where(np.ptp(X, axis=0) > 0, X.std(axis=0), 1.0)
    low, high = (np.broadcast_to(end, d) * spread for end in box)
    bounds = [*zip(np.zeros(d), high, strict=True), *zip(np.zeros(d), -low, strict=True)]

    def value(w):
        return objective.value_and_grad(X @ w)[0] + ridge / 2 * w @ w + l1 * np.abs(w).sum()

    def split(function):
        def value_and_grad(x):
            w = (x[:d] - x[d:]) / spread
            loss, slope = function.value_and_grad(X @ w)
            grad = (X.T @ slope + ridge * w) / spread
            if not np.isfinite(loss) or not np.isfinite(grad).all():
                return 1e300, np.zeros(2 * d)
            cost = l1 / np.tile(spread, 2)
            return loss + ridge / 2 * w @ w + cost @ x, np.concatenate([grad, -grad]) + cost

        return value_and_grad

    points, options = list(starts), {"maxiter": 200, "ftol": 1e-15, "gtol": 1e-12}
    for start in starts:
        x = np.concatenate([np.maximum(start * spread, 0), np.maximum(-start * spread, 0)])
        for function in (*rounded, objective):
            x = minimize(split(function), x, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
            points.append((x[:d] - x[d:]) / spread)
    values = [value(w) for w in points]
    return min(values), points[int(np.argmin(values))], value, spread


def faults_of(ranker, objective, rounded, X, ridge, l1, box):
    """Kinds of lies of a fitted ranker: about its objective, its gap, or whether it converged."""
    w = np.ravel(ranker.coef_)
    least, other, value, spread = lowest(objective, rounded, X, ridge, l1, box, [w, np.zeros_like(w)])
    at = value(w)
    unit = max(objective.unit, abs(at))
    excess, rounding = at - least, 1e-10 * unit
    kinds = {
        "objective": not abs(ranker.objective_ - at) <= 1e-8 * unit,
        "negative": ranker.grad_norm_ < 0 or ranker.dual_gap_ < -rounding,
        "gap": np.isfinite(ranker.dual_gap_) and excess > ranker.dual_gap_ + rounding,
        "nan": ranker.converged_ and np.isnan(ranker.grad_norm_),
        # a gradient of tol bounds what can be gained within a distance
        "converged": ranker.converged_
        and excess > ranker.tol * unit * (1 + 10 * float(np.abs((other - w) * spread).sum())) + rounding,
    }
    return [kind for kind, is_fault in kinds.items() if is_fault]


# ---------------------------------------------------------------- problems


def rows_and_weights(rng):
    n, d = int(rng.integers(6, 17)), int(rng.integers(1, 4))
    X = rng.normal(size=(n, d)) * 10 ** rng.uniform(-1, 1, d)
    X = np.round(X) if rng.random() < 0.2 else X
    relevance = X[:, 0] / X[:, 0].std() * rng.choice([0, 1, 3]) if np.ptp(X[:, 0]) else np.zeros(n)
    relevance = relevance + rng.normal(size=n)
    weight = np.ones(n) if rng.random() < 0.2 else rng.exponential(size=n)
    weight *= 10 ** rng.uniform(-6, 6) / weight.sum()
    groups = np.arange(n) % 2 if rng.random() < 0.3 else np.zeros(n)
    return X, relevance, weight, groups


PENALTIES = {
    "none": (0.0, None),
    "ridge": (0.0, None),
    "elastic net": (0.5, None),
    "lasso": (1.0, None),
    "positive": (0.0, (0.0, np.inf)),
    "positive lasso": (1.0, (0.0, np.inf)),
    "box": (0.5, (-0.3, 0.5)),
}


def fitted_push(rng, loss, penalty):
    """A push with random data, price, side and alpha, its definition, and rows, ridge, L1 norm and box."""
    X, relevance, weight, groups = rows_and_weights(rng)
    y = relevance > np.median(relevance)
    y[:4] = [True, True, False, False]  # both classes in both groups
    p = float(rng.choice([1, 4, 64, np.inf]))
    prices = ["power", "power", "exponential"] + ["log1p"] * (loss == "exponential")
    price = str(rng.choice(prices))
    share, box = PENALTIES[penalty]
    if p == np.inf and price == "power" and share == 1 and loss == "exponential":
        p = 4.0  # the limit has no minimum under a lasso
    side = str(rng.choice(["top", "bottom", "both"]))
    balance = float(rng.choice([0.3, 1.0, 5.0]))
    alpha = 0.0 if penalty == "none" else 10 ** rng.uniform(-6, 1)
    tol = float(rng.choice([1e-4, 1e-6, 1e-8]))
    if box is None:
        alpha = "auto" if alpha and rng.random() < 0.2 else alpha
        ranker = PNormPush(p, loss=loss, price=price, side=side, balance=balance, alpha=alpha, l1_ratio=share)
    else:
        kind = Lasso(alpha) if share == 1 else ElasticNet(alpha, share) if share else Ridge(alpha)
        kind = NonNegative(kind) if box[0] == 0 else Bounded(kind, *box)
        options = {"loss": loss, "side": side, "balance": balance}
        limit = price == "power" and p == np.inf
        if not limit:
            options |= {"p": p} if price == "power" else {"price": price}
        ranker = LinearRanker("infinite_push" if limit else "push", kind, objective_params=options)
    ranker.set_params(tol=tol).fit(X, y, sample_weight=weight, groups=groups)
    alpha = getattr(ranker, "alpha_", alpha)
    sides = {"top": {1: 1.0}, "bottom": {-1: 1.0}, "both": {1: 1.0, -1: balance}}[side]
    about = y, weight, groups, loss, price, p, sides
    objective = Pushes(*about)
    rounded = [Pushes(*about, rounding=width) for width in (0.1, 1e-2, 1e-3)]
    if not (loss == "hinge" or p == np.inf):
        rounded = []
    for other in rounded:
        other.count = objective.count
    if share == 1 and loss == "exponential" and price == "power":
        objective = InExponent(objective)
    box = (-np.inf, np.inf) if box is None else box
    return ranker, objective, rounded, X, alpha * (1 - share), alpha * share, box


def fitted_graded(rng, loss, penalty):
    """Three grades; the rest as for a push of the top."""
    X, relevance, weight, groups = rows_and_weights(rng)
    grades = np.digitize(relevance, [-0.5, 0.5])
    grades[:4] = [2, 2, 0, 0]
    p, price = float(rng.choice([1, 4, 16])), str(rng.choice(["power", "exponential"]))
    alpha = 10 ** rng.uniform(-6, 1)
    if penalty == "lasso":
        name = {"p": p} if price == "power" else {"price": price}
        ranker = LinearRanker("pairs", Lasso(alpha), objective_params={"loss": loss, **name})
    else:
        ranker = CrucialPairsPush(p, loss=loss, price=price, alpha=alpha)
    ranker.fit(X, grades, sample_weight=weight, groups=groups)
    about = grades, weight, groups, loss, price, p, {1: 1.0}
    objective = Pushes(*about)
    rounded = [Pushes(*about, rounding=width) for width in (0.1, 1e-2, 1e-3)] if loss == "hinge" else []
    for other in rounded:
        other.count = objective.count
    share = float(penalty == "lasso")
    if share and loss == "exponential" and price == "power":
        objective = InExponent(objective)
    return ranker, objective, rounded, X, alpha * (1 - share), alpha * share, (-np.inf, np.inf)


def fitted_other(rng, name):
    X, relevance, weight, groups = rows_and_weights(rng)
    y = relevance > np.median(relevance)
    y[:4] = [True, True, False, False]
    alpha = 10 ** rng.uniform(-6, 1)
    if name == "logistic regression":
        ranker, objective = (
            LogisticRanker(alpha=alpha).fit(X, y, sample_weight=weight),
            MeanLogLoss(y, weight),
        )
        return ranker, objective, [], X, alpha, 0.0, (-np.inf, np.inf)
    ranker = IRPush(alpha=alpha)
    ranker.fit(X, y, sample_weight=weight, groups=groups)
    objective = Pushes(y, weight, groups, "exponential", "log1p", 1.0, {-1: 1.0})
    return ranker, objective, [], X, alpha, 0.0, (-np.inf, np.inf)


def lies(make, *about, cases=CASES):
    """Seeds of the faults, and their kinds."""
    found = []
    for seed in range(cases):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # not converged, separable or collapsed, as the certificates say
            case = make(np.random.default_rng([7, seed]), *about)
            found += [(seed, kind) for kind in faults_of(*case)]
    return found


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", TIED_LOSS)
def test_no_push_has_a_lower_point_than_it_certifies(loss, penalty, counted):
    assert lies(fitted_push, loss, penalty) == []
    counted("fits compared with an independent search for a lower point", CASES)


@pytest.mark.parametrize("penalty", ["ridge", "lasso"])
@pytest.mark.parametrize("loss", TIED_LOSS)
def test_no_push_on_grades_has_a_lower_point_than_it_certifies(loss, penalty, counted):
    assert lies(fitted_graded, loss, penalty) == []
    counted("fits compared with an independent search for a lower point", CASES)


@pytest.mark.parametrize("name", ["IRPush", "logistic regression"])
def test_no_other_ranker_has_a_lower_point_than_it_certifies(name, counted):
    assert lies(fitted_other, name) == []
    counted("fits compared with an independent search for a lower point", CASES)


@pytest.mark.parametrize("shift", [1e2, 1e4])
def test_log_loss_on_columns_far_from_zero(shift):
    """An error of the intercept times a large mean is one of the gradient."""
    for seed in (4, 41):
        rng = np.random.default_rng(seed)
        X = np.round(64 * rng.normal(size=(20, 3))) / 64
        y = X @ [2.0, -1, 1] + rng.normal(size=20) > 0
        near = LogisticRanker(alpha=1e-3).fit(X, y)
        for far in (X + shift, sparse.csr_array(X + shift)):
            ranker = LogisticRanker(alpha=1e-3).fit(far, y)
            assert ranker.objective_ == pytest.approx(near.objective_, abs=1e-11)
            assert ranker.coef_ == pytest.approx(near.coef_, abs=1e-5)


@pytest.mark.parametrize("loss", TIED_LOSS)
def test_a_lasso_whose_weights_sum_to_one(loss):
    """``log Σ v·e^r`` is below 0, but not below ``log Σ v``."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y, weight = X[:, 0] + rng.normal(size=60) > 0, np.full(60, 1 / 60)
    ranker = PNormPush(price="exponential", loss=loss, alpha=1e-4, l1_ratio=1.0)
    ranker.fit(X, y, sample_weight=weight)
    about = y, weight, np.zeros(60), loss, "exponential", 1.0, {1: 1.0}
    rounded = [Pushes(*about, rounding=0.01)] * (loss == "hinge")
    assert faults_of(ranker, Pushes(*about), rounded, X, 0.0, 1e-4, (-np.inf, np.inf)) == []
    assert ranker.coef_.all()


def test_gaps_in_groups_at_scores_of_any_size():
    """Separated groups make scores of 1e12, whose rounding was a factor of the weights of a group."""
    rng = np.random.default_rng(0)
    groups, y = np.repeat(np.arange(4), 5), np.tile([1, 0, 0, 0, 0], 4)
    X = np.column_stack(
        [y * 1e6 + rng.integers(0, 2, 20), 1e4 * rng.integers(-1, 2, 20), rng.normal(size=20)]
    )
    ranker = PNormPush(2, alpha=0.1, solver="lbfgs", max_iter=30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ranker.fit(X, y, groups=groups)
        objective = Pushes(y, np.ones(20), groups, "exponential", "power", 2, {1: 1.0})
        lowest = PNormPush(2, alpha=0.1, tol=1e-9).fit(X, y, groups=groups)
    values = []
    for coef in (ranker.coef_, lowest.coef_):
        w = np.ravel(coef)
        values.append(objective.value_and_grad(X @ w)[0] + 0.05 * w @ w)
    rounding = 1e-14 * abs(values[0])
    assert values[0] - values[1] <= ranker.dual_gap_ + rounding
