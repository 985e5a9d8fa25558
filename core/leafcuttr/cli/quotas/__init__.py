"""`leafcuttr quotas`: how much users, client ids and addresses may have.

command    the commands
stored     quotas in a running cluster
"""
