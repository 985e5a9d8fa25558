"""The commands that LeafCuttr itself has: their names and what each does."""

from typing import Final

COMMANDS: Final = {
    "serve": "start the broker",
    "demo": "start a broker, send 200,000 records through it, compare every byte",
    "topics": "list, create, describe, alter and delete topics; offsets; delete records",
    "produce": "send records from standard input or a file",
    "consume": "print records",
    "groups": "list, describe and delete consumer groups; reset their offsets",
    "configs": "describe and change settings and quotas in a running cluster",
    "certs": "show, check, reload and make the certificates of listeners and clients",
    "users": "create, change, delete and list the users that may log in",
    "acls": "add, remove, list and check ACLs: who may do what",
    "quotas": "set, remove and list how much users, client ids and addresses may have",
    "logdirs": "what the log directories of brokers hold, and how much space is free",
    "cluster": "the id, brokers, features and API versions of a cluster",
    "transactions": "list, describe, find hanging and abort transactions",
    "perf": "measure how fast a broker takes and gives records",
    "config": "describe settings, check a file of them, show what differs from the defaults",
    "verify": "check every file of a data directory (offline)",
    "dump": "print what a log, index, snapshot or checkpoint file holds",
    "doctor": "find what usually goes wrong with a broker or a configuration",
    "repair": "repair a data directory or adopt topic folders (offline)",
    "plugins": "list and describe the plugins that are installed; check and write one",
    "completion": "print the script that lets a shell complete our command line",
}
"""In the order in which the help lists them. The names are also those that no plugin's command can have."""
