from hypothesis import settings

# the first call of a kernel compiles it, which is slow once and says nothing about the code
settings.register_profile("apexrank", deadline=None)
settings.load_profile("apexrank")
