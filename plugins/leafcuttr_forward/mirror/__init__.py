"""`leafcuttr mirror SOURCE TARGET`: one cluster to another, or one topic to another, also within a cluster.

ends        the two words of the command line, and files of client properties
spec        what they mean, as a flow of the engine
command     the command line
"""
