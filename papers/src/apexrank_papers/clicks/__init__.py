"""Unbiased learning to rank from simulated clicks on MQ2008, in the setup of Joachims et al. (2017)."""
