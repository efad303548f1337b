"""The P-Norm Push (Rudin, JMLR 2009; COLT 2006; talk of 2006)."""
