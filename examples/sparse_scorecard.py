"""A sparse scorecard: how few features can rank the top of the list, on the breast cancer data (30 features).

An L1 share in the penalty makes coefficients exactly zero. From the smallest alpha that leaves no feature
(``alpha_max``) downwards, features come in; the table shows what each size of scorecard gives on held-out rows.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from apexrank import PNormPush, metrics


def main() -> None:
    """Print the table, then the smallest scorecard that has five features or more."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y == 0, test_size=0.5, random_state=0)
    scaler = StandardScaler().set_output(transform="pandas").fit(X_train)
    X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
    ranker = PNormPush(p=8, l1_ratio=0.95, warm_start=True)
    highest = ranker.alpha_max(X_train, y_train)
    print("alpha / alpha_max   features     AUC   partial AUC 10%   TPR at 1% FPR   duality gap")
    card = None
    for share in (0.8, 0.5, 0.3, 0.1, 0.03, 0.01):
        ranker.set_params(alpha=share * highest).fit(X_train, y_train)
        scores, n_features = ranker.decision_function(X_test), int((ranker.coef_ != 0).sum())
        auc, partial = metrics.auc(y_test, scores), metrics.partial_auc(y_test, scores, max_fpr=0.1)
        tpr = metrics.tpr_at_fpr(y_test, scores, 0.01)
        gap = ranker.dual_gap_
        print(f"{share:17.2f} {n_features:10d} {auc:7.3f} {partial:17.3f} {tpr:15.3f} {gap:13.1e}")
        if card is None and n_features >= 5:
            card = {name: w for name, w in zip(X, ranker.coef_[0], strict=True) if w != 0}
    print("\nscorecard (points per standard deviation)")
    for name, points in sorted((card or {}).items(), key=lambda item: -abs(item[1])):
        print(f"{points:+8.2f}  {name}")


if __name__ == "__main__":
    main()
