"""A small network trained with a push
===================================

Does a push still help if the model is not linear? On the card payments, a linear ranker has to choose between
two kinds of fraud, and p decides which. A network can learn both. This example trains a network with eight
hidden units with cross entropy and with ``PushLoss(p=16)``, from the same three starting points each. In
PyTorch the push is a loss like any other: it takes scores and labels and is differentiable. Without PyTorch,
the page says so and shows only the linear rankers.
"""

from importlib.util import find_spec

import matplotlib.pyplot as plt
import numpy as np

from apexrank import PNormPush, datasets, metrics
from apexrank.plot.style import curve_style, light

# %%
# Fit linear rankers for comparison.
payments = datasets.make_push_example(4000)
y, train, test = payments.target, slice(0, 2000), slice(2000, 4000)
X = (payments.data - payments.data[train].mean(axis=0)) / payments.data[train].std(axis=0)
scores = {f"linear, p = {p}": [PNormPush(p=p).fit(X[train], y[train]).decision_function(X)] for p in (1, 16)}

# %%
# A push is not a sum over rows, so each step uses all rows. Batches would need rows of both classes, and would
# give the push within the batch.
if find_spec("torch") is None:
    print("PyTorch is not installed: pip install torch")
else:
    import torch

    from apexrank.integrations.torch import PushLoss

    rows, target = torch.tensor(X, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)

    def train_network(loss: torch.nn.Module, seed: int) -> np.ndarray:
        """Train a network on the first half of the payments and return scores for all of them."""
        torch.manual_seed(seed)
        network = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
        optimiser = torch.optim.Adam(network.parameters(), lr=0.02, weight_decay=1e-3)
        for _ in range(300):
            optimiser.zero_grad()
            loss(network(rows[train])[:, 0], target[train]).backward()
            optimiser.step()
        return network(rows)[:, 0].detach().numpy()

    losses = {"network, cross entropy": torch.nn.BCEWithLogitsLoss(), "network, p = 16": PushLoss(p=16)}
    scores |= {name: [train_network(loss, seed) for seed in range(3)] for name, loss in losses.items()}

# %%
# Compute the precision at the top of the list on the held-out payments, averaged over the starting points.
ks = (20, 50, 100, 200)
table = {}
print("precision at             " + "".join(f"{k:6}" for k in ks) + "     AUC")
for name, several in scores.items():
    found = [[metrics.precision_at(y[test], s[test], k=k) for k in ks] for s in several]
    area = np.mean([metrics.auc(y[test], s[test]) for s in several])
    table[name] = np.mean(found, axis=0)
    print(f"{name:25}" + "".join(f"{value:6.2f}" for value in table[name]) + f"   {area:.3f}")

# %%
figure, ax = plt.subplots(figsize=(7.4, 4.2), layout="constrained")
for number, (name, several) in enumerate(scores.items()):
    hits = [np.cumsum(y[test][np.argsort(-s[test], kind="stable")])[:250] for s in several]
    ax.plot(np.arange(1, 251), np.mean(hits, axis=0), label=name, **curve_style(number))
ax.set(xlabel="payments reviewed", ylabel="frauds found", title="The top 250 of 2000 payments")
light(ax)
ax.legend(frameon=False, handlelength=3.2)

# %%
best = max(table, key=lambda name: table[name][2])
print(f'Precision in the top 100 is highest for "{best}": {table[best][2]:.0%}.')
