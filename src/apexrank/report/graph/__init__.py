"""The report on graph ranks: PageRank beside L_pq ranks, and suspected link farms.

``compare`` ranks a graph, ``farms`` looks for targets of link farms, ``result`` is what was found with its verdict,
and ``page`` draws it.
"""
