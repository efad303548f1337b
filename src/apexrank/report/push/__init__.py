"""The report on pushes: whether a push helps on some rows, and how hard to push.

``rows`` reads arrays and holds rows out, ``table`` does so for tables, ``compare`` chooses p by cross-validation and
measures, ``result`` is what was found with its verdict, and ``page`` draws it.
"""
