"""The report on pushes: whether a push helps on some rows, and how hard to push.

``rows`` checks arrays and holds rows out; ``table`` does the same for tables, whose features ``columns`` chooses;
``compare`` chooses p by cross-validation and measures; ``result`` is the result with its verdict; ``page`` draws it.
"""
