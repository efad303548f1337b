"""One election, several voting rules
==================================

Fifty-five voters have ranked five candidates. The winner depends on the voting rule, and ``aggregate``
implements the common rules. With these ballots, first places alone elect A, Borda elects D, and E beats every
other candidate in pairwise comparisons. The Kemeny order contradicts the fewest preferences, with a proof of
optimality; a bootstrap over the voters shows how much of the result is chance.
"""

from itertools import permutations
from typing import Any

import numpy as np

from apexrank import aggregate
from apexrank.plot import AggregationDisplay

# %%
# Each key is an order, best first, and its value is the number of voters who cast it.
ballots = {"ADECB": 18, "BEDCA": 12, "CBEDA": 10, "DCEBA": 9, "EBDCA": 4, "ECDBA": 2}
orders, counts = [list(ballot) for ballot in ballots], list(ballots.values())
rules: dict[str, dict[str, Any]] = {
    "first places": {"method": "combsum", "points": [1]},
    "Borda": {"method": "borda"},
    "Copeland": {"method": "copeland"},
    "Kemeny": {"method": "kemeny"},
}
results = {name: aggregate(orders, counts, kind="orders", **rule) for name, rule in rules.items()}
for name, result in results.items():
    print(f"{name:13}{' > '.join(result.order)}")

# %%
# A Condorcet winner, a candidate whom a majority prefers to every other candidate, need not exist. Here it
# does:
kemeny = results["Kemeny"]
winner, place = kemeny.condorcet_winner, {item: number for number, item in enumerate(kemeny.items)}
for other in "ABCD":
    wins = kemeny.pairwise[place[winner], place[other]]
    print(f"{winner} beats {other} by {wins:.0f} to {sum(counts) - wins:.0f}")

# %%
# The Kemeny result includes its cost, the number of preferences it contradicts, and a lower bound for any
# order. With five candidates we can check all 120 orders.


def contradicted(order, result):
    """Count the voter preferences that an order contradicts."""
    numbers = [result.items.index(item) for item in order]
    return np.triu(result.pairwise[np.ix_(numbers, numbers)].T, 1).sum()


least = min(contradicted(order, kemeny) for order in permutations("ABCDE"))
print(
    f"cost {kemeny.cost:.0f}, bound {kemeny.bound:.0f}, proven optimal: {kemeny.optimal}; "
    f"minimum over all 120 orders: {least:.0f}"
)

# %%
# Bubbles show the places given by the voters, and bars the 95 % intervals of the result from a thousand
# bootstrap samples of the fifty-five voters.
drawn = kemeny.bootstrap(1000)
display = AggregationDisplay.from_result(kemeny, bootstrap=drawn)
display.ax_.set_title(f"Kemeny order of {sum(counts)} voters", pad=24, fontsize=11)
first = dict(zip(drawn.items, drawn.first, strict=True))
print("first in the bootstrap samples: " + ", ".join(f"{item} {first[item]:.1%}" for item in kemeny.order))

# %%
# In a harder case, nine judges who agree only a little rank twenty wines. There are too many orders to try,
# 2e18, but the result is still proven optimal.
rng = np.random.default_rng(0)
marks = np.linspace(1, 0, 20) + 0.7 * rng.normal(size=(9, 20))
judged = {method: aggregate(marks, method=method) for method in ("borda", "copeland", "kemeny")}
for method, result in judged.items():
    print(f"{method:9} contradicts {contradicted(result.order, result):.0f} of {9 * 190} preferences")
wines = judged["kemeny"]
minorities = np.minimum(wines.pairwise, wines.pairwise.T).sum() / 2
print(
    f"proven optimal: {wines.optimal}; contradicting only minorities would cost {minorities:.0f}, "
    "but majorities form cycles"
)

# %%
print(
    f"First places elect {results['first places'].order[0]}, Borda elects {results['Borda'].order[0]}, and pairwise "
    f"majorities and Kemeny elect {winner}. Over bootstrap samples of the voters, Kemeny elects {winner} in "
    f"{first[winner]:.0%} of the elections and D in {first['D']:.0%}."
)
