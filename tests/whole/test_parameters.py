"""Every estimator declares constraints for its parameters, and refuses a wrong value before it reads data."""

import numpy as np
import pytest
from sklearn.base import clone

from apexrank.aggregation import LovaszBregmanKMeans
from apexrank.parameters import InvalidParameterError
from apexrank.rankers import (
    AdditiveRetargeting,
    CrucialPairsPush,
    CurvesAndTrees,
    LetorRanker,
    LinearRanker,
    ListwiseRanker,
    LogisticRanker,
    MonotoneRetargeting,
    PNormPush,
    PNormPushCV,
    PushBoost,
    RankBoost,
    TreeRanker,
    TwoStagePush,
    UnknownLinkRegressor,
)
from apexrank.rankers.base import LinearEstimator
from tests.whole.test_estimator_checks import ESTIMATORS

OUTSIDE = {
    PNormPush: {
        "p": (0.5, float("nan"), "4"),
        "loss": ("hings", "zero_one"),
        "price": ("cube",),
        "side": ("left",),
        "balance": (-1.0, float("inf")),
        "alpha": (-1.0, float("inf"), "aut"),
        "l1_ratio": (-0.1, 1.1),
        "solver": ("simplex",),
        "max_iter": (0, 2.5),
        "tol": (-1.0, float("nan")),
        "verbose": (-1,),
    },
    RankBoost: {"t_max": (0,), "alpha": ("auto",)},
    LogisticRanker: {"alpha": (0.0, "auto")},
    PNormPushCV: {"ps": (4.0,), "alphas": ("none",), "cv": (1,), "n_jobs": (0.5,)},
    MonotoneRetargeting: {
        "divergence": ("hellinger",),
        "order": ("none",),
        "margin": (-1.0,),
        "offsets": ("cube",),
        "reward": (-1.0,),
        "bounds": (3.0,),
        "kernel": ("unheard",),
        "gamma": (-1.0,),
    },
    AdditiveRetargeting: {"n_knots": (1,), "n_pairs": (-1,), "monotonic_cst": (1,)},
    ListwiseRanker: {"loss": ("lambdarank",), "divergence": ("kl",), "strong_convexity": (0.0,)},
    UnknownLinkRegressor: {"strong_convexity": (0.0,), "link": ("spline",), "output_range": (1.0,)},
    CrucialPairsPush: {"p": (0.5, float("inf")), "truth": ("yes",)},
    LinearRanker: {"objective": ("pushes",), "penalty": (0.1,), "objective_params": ([],)},
    PushBoost: {"p": (float("inf"),), "learning_rate": (0.0,), "validation_fraction": (0.0, 1.0)},
    TwoStagePush: {"keep": (0, 0.0, 1.5)},
    TreeRanker: {"leaves": (1,), "rounds": (0,), "learning_rate": (0.0,), "folds": (1,), "extra": (2,)},
    CurvesAndTrees: {"rounds": (0,), "folds": (1,)},
    LetorRanker: {"n_folds": (1,)},
    LovaszBregmanKMeans: {"n_clusters": (0,)},
}


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
def test_every_parameter_has_a_constraint_and_refuses_an_object_of_no_known_type(estimator):
    names = estimator.get_params(deep=False)
    assert set(names) <= set(estimator._parameter_constraints)
    if isinstance(estimator, LinearEstimator):
        assert set(names) == set(estimator._parameter_constraints)
    clone(estimator)._validate_params()
    type(estimator)()._validate_params()
    for name in names:
        wrong = type(estimator)(**{name: object()})
        with pytest.raises(InvalidParameterError, match=f"'{name}' parameter of"):
            wrong._validate_params()
        with pytest.raises(InvalidParameterError, match=f"'{name}' parameter of"):
            wrong.fit(np.eye(2))  # a graph, for those that read one first


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [(kind, name, value) for kind in OUTSIDE for name in OUTSIDE[kind] for value in OUTSIDE[kind][name]],
)
def test_a_value_outside_its_range_is_refused(kind, name, value):
    with pytest.raises(InvalidParameterError, match=f"'{name}' parameter of {kind.__name__}"):
        kind(**{name: value}).fit(None, None)


@pytest.mark.parametrize(
    ("estimator", "names"),
    [
        (PNormPushCV(ps=[]), "`ps`"),
        (PNormPushCV(ps=[0.5]), "'p' parameter"),
        (PNormPushCV(alphas=[-1.0]), "'alpha' parameter"),
        (MonotoneRetargeting(margin=0.0), "`margin`"),
        (MonotoneRetargeting(reward=1.0, alpha=0.0), "`alpha`"),
        (MonotoneRetargeting("kl", bounds=(0, 1)), "divergence='squared'"),
        (MonotoneRetargeting("logistic"), "logistic"),
        (MonotoneRetargeting(bounds=(1, 0)), "`bounds`"),
        (MonotoneRetargeting(joint_convexity=(1.0,)), "`joint_convexity`"),
        (AdditiveRetargeting(kernel="rbf"), "kernel=None"),
        (AdditiveRetargeting(bounds=(0, 1)), "bounds=None"),
        (UnknownLinkRegressor(output_range=(1, 0)), "`output_range`"),
    ],
)
def test_parameters_that_exclude_each_other_are_refused(estimator, names):
    for check in (estimator._validate_params, lambda: estimator.fit(None, None)):
        with pytest.raises(ValueError, match=names):
            check()
