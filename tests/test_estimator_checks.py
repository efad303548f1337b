"""scikit-learn's own checks, with no expected failure."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from apexrank import IRPush, PNormPush, PNormPushCV, RankBoost

ESTIMATORS = [
    PNormPush(),
    PNormPush(p=1, solver="coordinate"),
    PNormPush(p=16, side="both", alpha=1e-2),
    PNormPush(price="exponential", alpha=1e-2),
    PNormPush(price="log1p", side="bottom"),
    IRPush(),
    RankBoost(),
    PNormPushCV(ps=[1, 4], alphas=[1e-3], cv=2),
]


# many of the checks' tiny data sets are separable or cut short on purpose
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
