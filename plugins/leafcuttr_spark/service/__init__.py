"""Pipelines that a broker runs: a child process, `leafcuttr spark run FILE`, for each file of a folder.

`settings`    what can be set
`folder`      which files there are, and which have changed
`reports`     what is known of each pipeline
`pipelines`   the service
`people`      its health check, its metrics, its path of the admin port
"""
