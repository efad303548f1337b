"""Report on graph ranks: PageRank compared with ranks that resist link farms, and suspected farms.

``compare`` ranks a graph and searches for targets of link farms, ``result`` holds the findings with a verdict, and
``page`` renders them.
"""
