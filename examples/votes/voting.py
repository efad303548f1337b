"""Who has won? One election, several rules
========================================

Fifty-five voters have put five candidates in order. Who has won depends on the rule, and ``aggregate`` has
them by name: with these ballots first places alone elect A, Borda's points D,
and E beats everybody in pairs. Kemeny's order contradicts the fewest preferences, with a proof; drawing the
voters anew tells how much of that is luck.
"""

from itertools import permutations
from typing import Any

import numpy as np

from apexrank import aggregate
from apexrank.plot import AggregationDisplay

# %%
# Orders, best first, and how many voters cast each.
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
# The candidate that a majority prefers to each other one, Condorcet's winner, need not exist. Here it does:
kemeny = results["Kemeny"]
winner, place = kemeny.condorcet_winner, {item: number for number, item in enumerate(kemeny.items)}
for other in "ABCD":
    wins = kemeny.pairwise[place[winner], place[other]]
    print(f"{winner} beats {other} by {wins:.0f} to {sum(counts) - wins:.0f}")

# %%
# Kemeny's order comes with its cost, the number of preferences it contradicts, and a bound that no order can
# beat. Five candidates are few enough to try all 120 orders.


def contradicted(order, result):
    """Number of preferences of voters that an order contradicts."""
    numbers = [result.items.index(item) for item in order]
    return np.triu(result.pairwise[np.ix_(numbers, numbers)].T, 1).sum()


least = min(contradicted(order, kemeny) for order in permutations("ABCDE"))
print(
    f"cost {kemeny.cost:.0f}, bound {kemeny.bound:.0f}, proven {kemeny.optimal}; the least of all 120 is {least:.0f}"
)

# %%
# Bubbles are the voters' places, bars 95 % intervals of the result: fifty-five voters, drawn anew a thousand
# times.
drawn = kemeny.bootstrap(1000)
display = AggregationDisplay.from_result(kemeny, bootstrap=drawn)
display.ax_.set_title(f"Kemeny's order of {sum(counts)} voters", pad=24, fontsize=11)
first = dict(zip(drawn.items, drawn.first, strict=True))
print("first in the draws: " + ", ".join(f"{item} {first[item]:.1%}" for item in kemeny.order))

# %%
# A harder case: twenty wines, nine judges who agree a little. Nobody could try all 2e18 orders; the proof
# still comes.
rng = np.random.default_rng(0)
marks = np.linspace(1, 0, 20) + 0.7 * rng.normal(size=(9, 20))
judged = {method: aggregate(marks, method=method) for method in ("borda", "copeland", "kemeny")}
for method, result in judged.items():
    print(f"{method:9} contradicts {contradicted(result.order, result):.0f} of {9 * 190} preferences")
wines = judged["kemeny"]
minorities = np.minimum(wines.pairwise, wines.pairwise.T).sum() / 2
print(
    f"proven: {wines.optimal}; only minorities contradicted would be {minorities:.0f}, but majorities go in circles"
)

# %%
print(
    f"First places elect {results['first places'].order[0]}, Borda {results['Borda'].order[0]}, majorities and Kemeny "
    f"{winner}; with the voters drawn anew {winner} wins by Kemeny in {first[winner]:.0%} of the elections and D in "
    f"{first['D']:.0%}."
)
