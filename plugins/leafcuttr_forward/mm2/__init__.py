"""Forwarding as MirrorMaker 2's file says it: its keys, its names of topics, its records. The engine is in `flows`.

service     runs what a file says, in a broker
file        reads the file, and says what is wrong with it: `entries`, `providers`, `planning`, `circles`
plan        what it asks for, as values
keys        all keys with what they do here; `worker_keys`, `client_keys`
policy      what topics are called at the target
patterns    regular expressions of Java
records     heartbeats, checkpoints, offset syncs as bytes
emitting    writes them: `syncs` and `translating` say which, `internal` has their topics
leftovers   where MirrorMaker stopped
reaching    clusters as peers
"""
