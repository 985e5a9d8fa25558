"""`leafcuttr acls`: who may do what.

command      the commands
selection    the options that say which ACLs are meant
stored       ACLs in a running broker, or in a data directory that no broker uses
"""
