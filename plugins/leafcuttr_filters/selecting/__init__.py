"""Filters that keep records as they are, drop them or set them aside.

matching    allow, deny, tombstones
sampling    sample
rates       rate
copies      dedupe
ages        age
excess      what becomes of those that do not pass
"""
