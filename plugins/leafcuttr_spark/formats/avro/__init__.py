"""Avro: `schema` reads schemas, `reading` makes columns of values, by `resolution` where writer and reader differ, and
`writing` makes values of columns."""
