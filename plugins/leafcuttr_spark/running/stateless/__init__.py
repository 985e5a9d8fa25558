"""Operations without state, each as Spark's own expressions.

`columns`     filter, map, select, cast, drop, rename, flat-map
`graph`       branch, union
`functions`   SQL, functions in Python
`transforms`  Kafka Connect's transforms
"""
