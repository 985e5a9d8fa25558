"""The broker for a client of a plugin (`Security.acting_for`): the facade, with rights.

rights              what the client may do, and what it has used of its quotas
view                the facade with them; producing and reading ask by themselves
topics, groups      the same parts as a client may see and change them
schemas             schemas of subjects that it may read, and add schemas to
consumer            a member of a group that may be in it
"""
