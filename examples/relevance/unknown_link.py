"""Regression with an unknown link
===============================

A response increases with a weighted sum of the features, but along an unknown curve: an effect that saturates, or
marks out of ten. What are the relative weights of the features? ``UnknownLinkRegressor`` fits ``y ≈ g(x·w)``
and assumes only that g is increasing. Least squares, which assumes that g is a straight line, gets the weights
wrong if features are skewed and the curve is not straight.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression

from apexrank import UnknownLinkRegressor, metrics
from apexrank.plot.style import COLOURS, light

# %%
# Simulate 3,000 rows with skewed features; the link is logistic, but no model is told.
true = np.array([2.0, -1.0, 0.5])


def rows(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Simulate features and a response that saturates at 0 and 1."""
    X = rng.gamma(0.5, size=(n, 3))
    return X, 1 / (1 + np.exp(-X @ true)) + 0.02 * rng.normal(size=n)


rng = np.random.default_rng(0)
X, y = rows(rng, 3000)
X_new, y_new = rows(rng, 3000)

# %%
# Only the direction of w is identifiable, so scale the first weight to its true value, 2.
models = {"unknown link": UnknownLinkRegressor().fit(X, y), "least squares": LinearRegression().fit(X, y)}
print("                 weights               R² on new rows   Kendall's tau of the index")
for name, model in models.items():
    weights = (2 * model.coef_ / model.coef_[0]).round(2).tolist()
    order = metrics.kendall_tau(scores=(X_new @ model.coef_, X_new @ true))
    print(f"{name:15}  {weights!s:20} {model.score(X_new, y_new):14.3f} {order:28.3f}")
print(f"truth            {true.tolist()}")
link = models["unknown link"]
print(f"converged: {link.converged_}, duality gap {link.dual_gap_:.0e}")

# %%
# Plot the fitted link with the data, and the convex function whose gradient is its inverse.
figure, axes = plt.subplots(1, 2, figsize=(9.6, 4.4), layout="constrained")
index = link.index(X)
grid, values = np.linspace(index.min(), index.max(), 500), np.linspace(y.min(), y.max(), 500)
axes[0].scatter(index, y, s=4, color="0.6")
axes[0].plot(grid, link.link_(grid), color=COLOURS[0])
axes[0].set(xlabel="θ = x·w", ylabel="y", title="Fitted link g")
axes[1].plot(values, link.recovered_phi_(values), color=COLOURS[0])
axes[1].set(xlabel="v, value of the link", ylabel="φ(v)", title="Recovered φ, gradient g⁻¹")
for ax in axes:
    light(ax)


# %%
# Compute the angle between the fitted and the true weights for ten more draws.
def angle(w: np.ndarray) -> float:
    """Return the angle between w and the true weights in degrees."""
    return float(np.degrees(np.arccos(w @ true / np.linalg.norm(w) / np.linalg.norm(true))))


angles: dict[str, list[float]] = {"unknown link": [], "least squares": []}
for seed in range(1, 11):
    X, y = rows(np.random.default_rng(seed), 3000)
    angles["unknown link"].append(angle(UnknownLinkRegressor().fit(X, y).coef_))
    angles["least squares"].append(angle(LinearRegression().fit(X, y).coef_))
means = {name: np.mean(values) for name, values in angles.items()}
print(
    f"The angle to the true weights is {means['unknown link']:.1f} degrees with an unknown link and "
    f"{means['least squares']:.1f} degrees with least squares (means over ten draws)."
)
