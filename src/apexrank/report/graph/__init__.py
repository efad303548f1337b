"""The report on graph ranks: PageRank beside ranks that resist link farms, and suspected farms.

``compare`` ranks a graph and looks for targets of link farms, ``result`` is what was found with its verdict, and
``page`` draws it.
"""
