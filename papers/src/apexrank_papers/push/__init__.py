"""The P-Norm Push (Rudin, COLT 2006 and JMLR 2009, with her talk of 2006)."""
