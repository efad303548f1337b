"""Learning to rank beside LambdaMART and its peers; a study of ours, with no paper behind it."""
