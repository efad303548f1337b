"""The report on ranks under attack, from `apexrank.graph.attack_ranks`."""
