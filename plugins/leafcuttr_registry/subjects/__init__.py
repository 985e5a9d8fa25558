"""What the registry knows, without any input or output: contexts, subjects, versions, ids, config and mode.

names       contexts in names of subjects
metadata    metadata and rule sets: read, merged, hashed
content     what has an id: the text with its type, references, metadata and rules
events      what changes the state; each is a record of `_schemas`
state       the state, and what an event does to it
scopes      config and mode as they hold for a subject
registering, deleting      what a request means: the events that it takes
listing     what is listed
"""
