"""Comparison of LetorRanker with LambdaMART and its peers; our own study, not from a paper."""
