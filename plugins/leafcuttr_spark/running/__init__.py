"""A pipeline on Spark: one streaming query of all its steps and sinks.

`session`     the session of Spark
`run`         starts a pipeline; the query while it runs
`compiling`   steps in order to frames; `compilers` says which function compiles which operation
`sources`     the frames that steps begin with
`stateless`, `stateful`     the operations
`rows`        the columns that frames have beside the user's
`attempts`    expressions whose failure makes a dead letter
`sharing`     a frame that is used more than once and computed once
`outputs`     all sinks as one data set; `encoding` makes records of rows
`writing`     what is done with each micro-batch
`limits`      how many dead letters stop a pipeline
`failures`    what fails, in one line with the step
`paths`       functions and classes of the user's
"""
