"""What operators of a pipeline see and do, all but Spark: it works where that is not installed.

`exits`     how `leafcuttr spark run` ends
`status`    the file in which a run says how it goes
"""
