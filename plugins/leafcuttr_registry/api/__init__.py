"""The registry over HTTP: the API of Confluent's registry, with the answers that LeafCuttr's manual gives.

front           every request: contexts in paths, what is answered at once, refusals
exchange        a request: its media types, its query, its body
answers         what is answered, as JSON
requests        what bodies mean
server          `/`, `/restart`, `/v1/metadata`
schemas, subjects, versions, compatibility, config, mode, contexts      the endpoints
"""
