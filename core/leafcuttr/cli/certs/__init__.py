"""`leafcuttr certs`: the certificates of listeners and clients.

command      the commands
found        certificates of a file, or of a server that shows them
listeners    the listeners of a configuration, and of a running broker, that have TLS
made         a certificate authority to try with
"""
