"""Bearer tokens: JSON Web Tokens (RFC 7519) that another party has signed, checked against its keys.

token          what a token says, and whether its claims fit
keys           JSON Web Key Sets (RFC 7517) and signatures (RFC 7518)
key_source     where the keys come from: a file, or the issuer's endpoint
sources        those of a broker
checking       the settings of it, and a token as a whole

None of it knows Kafka's protocol: SASL's OAUTHBEARER is in `server.login.oauthbearer`.
"""
