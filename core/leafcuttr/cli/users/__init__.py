"""`leafcuttr users`: who may log in by SCRAM, or by PLAIN where the settings name nobody.

command      the commands
passwords    where a password comes from
stored       users in a running broker, or in a data directory that no broker uses
"""
