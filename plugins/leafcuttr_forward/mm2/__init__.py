"""Forwarding as MirrorMaker 2's file says it: its keys, its names of topics, its records. The engine is in `flows`.

records     heartbeats, checkpoints, offset syncs as bytes
patterns    regular expressions of Java
policy      what topics are called at the target
"""
