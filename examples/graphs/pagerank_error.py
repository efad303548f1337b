"""The error of PageRank in networkx and apexrank
==============================================

Two libraries compute different PageRanks for the same graph: which one is right? networkx stops when the last
step changed the scores by less than ``tol`` times the number of vertices, which is a weak condition for large
graphs. ``PageRank`` stops when the distance to the exact scores is provably at most ``tol``, and reports the
bound. You can keep the networkx call: ``nx.pagerank(graph, backend="apexrank")``.
"""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np

from apexrank import PageRank, datasets
from apexrank.plot.style import light, line_style

# %%
# Characters of *Les Misérables* are linked if they appear together. Compare the scores of networkx, of networkx
# with the apexrank backend, and of the estimator, which reports its error.
novel = nx.les_miserables_graph()
theirs, handed = nx.pagerank(novel), nx.pagerank(novel, backend="apexrank")
ours = PageRank().fit(novel)
print("            networkx    backend   estimator")
for name, score in ours.top(4):
    print(f"{name:10} {theirs[name]:.7f}  {handed[name]:.7f}   {score:.7f}")
print(f"the estimator's error is at most {ours.error_bound_:.0e}, after {ours.n_iter_} steps")

# %%
# For a crawl of 10,000 pages, scores with an error bound of 1e-12 serve as the exact scores.
web = datasets.make_crawl(10_000, random_state=0).adjacency
crawl = nx.from_scipy_sparse_array(web, create_using=nx.DiGraph)
exact = PageRank(tol=1e-12).fit(web)


def networkx_scores(**options):
    """Return networkx scores in the order of the pages."""
    return np.array(list(nx.pagerank(crawl, **options).values()))


def error(scores):
    """Return the L1 distance to the exact scores."""
    return np.abs(scores - exact.scores_).sum()


# %%
# Compute the error for each ``tol``, and the error bound that apexrank reports.
tols = [1e-4, 1e-6, 1e-8, 1e-10]
theirs = {tol: networkx_scores(tol=tol) for tol in tols}
of_networkx = [error(scores) for scores in theirs.values()]
fitted = [PageRank(tol=tol).fit(web) for tol in tols]
of_ours, bounds = [error(rank.scores_) for rank in fitted], [rank.error_bound_ for rank in fitted]
print("  tol   networkx   apexrank  its bound")
for row in zip(tols, of_networkx, of_ours, bounds, strict=True):
    print("{:.0e}  {:9.1e}  {:9.1e}  {:9.1e}".format(*row))

figure, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
for number, (name, errors) in enumerate({"networkx": of_networkx, "apexrank": of_ours}.items()):
    ax.plot(tols, errors, label=name, **line_style(number))
ax.plot(tols, tols, color="0.55", linewidth=0.9, label="error = tol")
ax.set(xscale="log", yscale="log", xlabel="tol", ylabel="L1 distance to the exact scores")
ax.invert_xaxis()
ax.legend(frameon=False, handlelength=3.2)
light(ax)

# %%
# Does it matter? Compare the top hundred pages with networkx's default ``tol`` of 1e-6.
wrong = (np.argsort(-theirs[1e-6], kind="stable")[:100] != exact.ranking_[:100]).sum()
print(f"{wrong} of the first 100 places hold the wrong page")

# %%
# For the same accuracy, networkx needs a smaller ``tol``: divide it by the number of vertices, and by α/(1 − α)
# = 5.7 to account for the remaining steps.
careful = error(networkx_scores(tol=1e-6 / 5.7 / len(crawl), max_iter=200))
print(
    f"With tol = 1e-6 the error of networkx is {of_networkx[1]:.0e} and that of apexrank {of_ours[1]:.0e}; with a tol "
    f"{5.7 * len(crawl):,.0f} times smaller the error of networkx is {careful:.0e}."
)
