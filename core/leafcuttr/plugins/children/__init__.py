"""`leafcuttr_sdk.Broker.child`: programs of plugins beside the broker.

`keeper` is the program that stands between the broker and each of them, and ends it with all that it has started;
`process` the broker's end of one run, `output` what is logged of its lines, `supervised` its life: started, started
again, stopped. Nothing of it is imported before the first child.
"""
