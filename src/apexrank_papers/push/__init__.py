"""The P-Norm Push (Rudin, COLT 2006 and JMLR 2009, with her talk of 2006)."""

from apexrank_papers.result import Experiment

EXPERIMENTS = (
    Experiment(
        "table1",
        "JMLR 2009, Table 1: a swap at the bottom and a swap at the top",
        "push.illustrations:table1",
    ),
    Experiment("table2", "JMLR 2009, Table 2: reversal of polarity", "push.illustrations:table2"),
    Experiment("table3", "JMLR 2009, Table 3: MAGIC", "push.tables:TABLE3.run"),
    Experiment(
        "table4",
        "JMLR 2009, Table 4: ionosphere, the 126 bad returns as positives",
        "push.tables:TABLE4.run",
    ),
    Experiment(
        "table4-good",
        "JMLR 2009, Table 4 with the class its text names, the good returns",
        "push.tables:TABLE4_GOOD.run",
    ),
    Experiment("table5", "JMLR 2009, Table 5: housing", "push.tables:TABLE5.run"),
    Experiment("figure5-magic", "JMLR 2009, Figure 5: MAGIC", "push.roc:FIGURE5.run"),
    Experiment("figure6-ionosphere", "JMLR 2009, Figure 6: ionosphere", "push.roc:FIGURE6.run"),
    Experiment("figure7-housing", "JMLR 2009, Figure 7: housing", "push.roc:FIGURE7.run"),
    Experiment(
        "colt-figure2-pima-threshold",
        "COLT 2006, Figure 2: pima, threshold features",
        "push.roc:COLT_FIGURE2.run",
    ),
    Experiment(
        "colt-figure3-wdbc", "COLT 2006, Figure 3: wdbc, first six features", "push.roc:COLT_FIGURE3.run"
    ),
    Experiment("colt-figure4-housing", "COLT 2006, Figure 4: housing", "push.roc:COLT_FIGURE4.run"),
    Experiment(
        "colt-figure5-pima-50", "COLT 2006, Figure 5: pima, 50 training rows", "push.roc:COLT_FIGURE5.run"
    ),
    Experiment("pima-real", "Talk: pima, real-valued features", "push.roc:PIMA_REAL.run"),
    Experiment("tic-tac-toe", "Talk: tic-tac-toe", "push.roc:TIC_TAC_TOE.run"),
    Experiment(
        "figure1", "JMLR 2009, Figure 1: contribution of each pair to R_p,exp", "push.figures:figure1"
    ),
    Experiment("figure3", "JMLR 2009, Figure 3: three discounts", "push.figures:figure3"),
    Experiment(
        "figure4", "JMLR 2009, Figure 4: contribution of each pair to the IR Push", "push.figures:figure4"
    ),
    Experiment("figure8", "JMLR 2009, Figure 8: the inequality of Lemma 7", "push.figures:figure8"),
    Experiment(
        "one-dimension",
        "JMLR 2009, sec. 10.1: why a large p needs more data",
        "push.one_dimension:one_dimension",
    ),
    Experiment(
        "sample-size",
        "JMLR 2009, Theorems 2 and 3: negatives needed against p",
        "push.tradeoffs:sample_size",
    ),
    Experiment(
        "magic-tradeoff",
        "MAGIC: measures of the whole list and of its top against p",
        "push.tradeoffs:magic_tradeoff",
    ),
    Experiment(
        "adaboost-ranker", "Talk: AdaBoost with a constant is RankBoost", "push.boosting:adaboost_ranker"
    ),
    Experiment(
        "capacity", "JMLR 2009, sec. 9.1: p matters to a model of small capacity", "push.boosting:capacity"
    ),
)
