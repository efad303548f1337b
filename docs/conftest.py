"""What pytest leaves alone here: the site's own code, and what building it leaves behind."""

collect_ignore = ["_build", "_ext", "api/generated", "auto_examples", "conf.py"]
