"""Folders that pytest skips: the code of the site and the output of its build."""

collect_ignore = ["_build", "_ext", "api/generated", "auto_examples", "conf.py"]
