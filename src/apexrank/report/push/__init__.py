"""The report on pushes: whether a push helps on some rows, and how hard to push.

``rows`` checks arrays and holds rows out; ``table`` does the same for tables, and chooses their features;
``compare`` chooses p by cross-validation and measures; ``result`` is the result with its verdict; ``page`` draws it.
"""
