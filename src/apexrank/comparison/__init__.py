"""Comparison of rankers at the top of the list, with confidence intervals and a verdict.

`compare_rankers` (arrays) and `compare_table` (a table) fit logistic regression, a linear push, curves,
boosted trees, and curves with trees on repeated splits of the rows and measure the top of the list on held-out rows.
`apexrank.report.build` makes a report of the result.
"""

from typing import TYPE_CHECKING

from apexrank.lazy import attach

if TYPE_CHECKING:
    from apexrank.comparison.candidates import Candidate as Candidate
    from apexrank.comparison.candidates import Curves as Curves
    from apexrank.comparison.candidates import CurvesWithTrees as CurvesWithTrees
    from apexrank.comparison.candidates import Estimator as Estimator
    from apexrank.comparison.candidates import LinearPush as LinearPush
    from apexrank.comparison.candidates import Logistic as Logistic
    from apexrank.comparison.candidates import Trees as Trees
    from apexrank.comparison.compare import compare_rankers as compare_rankers
    from apexrank.comparison.result import Comparison as Comparison
    from apexrank.comparison.result import Verdict as Verdict
    from apexrank.comparison.table import compare_table as compare_table
    from apexrank.comparison.trials import Top as Top
else:
    __getattr__, __dir__, __all__ = attach(__name__)
