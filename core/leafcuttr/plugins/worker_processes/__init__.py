"""`leafcuttr_sdk.Broker.run_in_worker`: functions of plugins in processes of their own.

`child` is the program that such a process runs, `process` the broker's end of one, `pool` the few that there are and
the calls that wait for them. `functions` says what can be sent of a function, `pickling` makes and reads pickles
without holding the loop. Nothing of it is imported before the first call.
"""
