"""A transformer that sees the whole list
======================================

Can a scorer that sees all documents of a query beat one that sees each document alone? In these simulated
queries people want either recent or established documents, and only the list as a whole reveals which. A small
network with self-attention across the documents of a query is trained on padded batches (queries x documents,
with a mask), and compared with the same network without attention and with a linear ranker. Without PyTorch,
the page says so and shows only the linear ranker.
"""

from importlib.util import find_spec

import matplotlib.pyplot as plt
import numpy as np

from apexrank import MonotoneRetargeting, metrics
from apexrank.plot.style import light, line_style

# %%
# Lists have 8 to 24 documents. The third feature is a noisy indicator of the intent of the query, +1 or -1.
N_QUERIES, MOST, TRAIN = 600, 24, 300
rng = np.random.default_rng(0)
mask = np.arange(MOST) < rng.integers(8, MOST + 1, size=N_QUERIES)[:, None]
wanted = rng.choice([-1.0, 1.0], size=(N_QUERIES, 1))
X = rng.normal(size=(N_QUERIES, MOST, 3))
X[:, :, 2] += wanted
quality = wanted * X[:, :, 0] + 0.5 * X[:, :, 1] + 0.3 * rng.normal(size=mask.shape)
grades = np.where(mask, (quality > 0.5).astype(int) + (quality > 1.5), -1)
print(f"{mask[:TRAIN].sum()} documents of {TRAIN} queries for training, {mask[TRAIN:].sum()} of new queries")

# %%
# The linear ranker accepts flat rows: one row per document, and the query of each.
query = np.repeat(np.arange(N_QUERIES)[:, None], MOST, axis=1)
flat = {half: np.where(mask, (query < TRAIN) == (half == "train"), False) for half in ("train", "test")}
linear = MonotoneRetargeting().fit(X[flat["train"]], grades[flat["train"]], groups=query[flat["train"]])
scores = {"linear": linear.predict(X[flat["test"]])}

# %%
# The networks accept padded batches. The loss and the attention ignore padding; ``reduction="mean"`` makes the
# step size independent of the number of queries in a batch.
if find_spec("torch") is None:
    print("PyTorch is not installed: pip install torch")
else:
    import torch

    from apexrank.integrations.torch import RetargetLoss

    class ListScorer(torch.nn.Module):
        """Score each document by its features and, with attention, by the other documents of its query."""

        def __init__(self, attention: bool, width: int = 16) -> None:
            super().__init__()
            self.enter = torch.nn.Sequential(torch.nn.Linear(3, width), torch.nn.ReLU())
            self.attend = torch.nn.MultiheadAttention(width, 2, batch_first=True) if attention else None
            self.leave = torch.nn.Sequential(
                torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, 1)
            )

        def forward(self, documents: torch.Tensor, there: torch.Tensor) -> torch.Tensor:
            hidden = self.enter(documents)
            if self.attend is not None:
                hidden = hidden + self.attend(hidden, hidden, hidden, key_padding_mask=~there)[0]
            return self.leave(hidden)[:, :, 0]

    rows, there = torch.tensor(X, dtype=torch.float32), torch.from_numpy(mask)
    loss = RetargetLoss(reduction="mean")
    for name, attention in (("network, no attention", False), ("network with attention", True)):
        torch.manual_seed(0)
        network = ListScorer(attention)
        optimiser = torch.optim.Adam(network.parameters(), lr=0.01)
        for step in range(240):
            batch = torch.arange(TRAIN)[step % 3 :: 3]
            optimiser.zero_grad()
            loss(network(rows[batch], there[batch]), grades[batch], mask=there[batch]).backward()
            optimiser.step()
        scores[name] = network(rows, there).detach().numpy()[flat["test"]]

# %%
# Compute NDCG at 10 on new queries, with bootstrap intervals over whole queries.
target, groups = grades[flat["test"]], query[flat["test"]]
table = metrics.compare(scores, None, target, groups, measures=["ndcg@10"])
print("scorer                     NDCG@10  95 % interval    difference from linear")
for row in table.iter_rows(named=True):
    line = f"{row['ranker']:25} {row['value']:8.3f}  {row['low']:.3f} to {row['high']:.3f}"
    if row["difference"] is not None:
        line += f"  {row['difference']:+.3f} ({row['difference_low']:+.3f} to {row['difference_high']:+.3f})"
    print(line)

# %%
cuts = range(1, 11)
columns = [f"ndcg_at_{k}" for k in cuts]
figure, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
for number, (name, values) in enumerate(scores.items()):
    means = metrics.evaluate(target, values, columns, groups=groups)
    ax.plot(cuts, list(means.values()), label=name, **line_style(number))
ax.set(xlabel="k, documents from the top", ylabel="NDCG at k")
light(ax)
ax.legend()

# %%
best = table.sort("value")["ranker"][-1]
print(f"Best on new queries: {best}.")
