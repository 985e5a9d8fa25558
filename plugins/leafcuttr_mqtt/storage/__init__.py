"""What outlives a connection or the process: sessions, queued and retained messages, wills, in internal topics.

`state`       what is kept, as plain data
`formats`     the records of the internal topics as bytes; no I/O
`turn`        the events of one turn, as batches; no I/O
`topics`      the internal topics themselves
`store`       `Store`: notes the events of a turn, gives their batches, and reads queued messages
`replay`      events of the queue one after the other, back to the state that they left; no I/O
`recovery`    what a start reads
`checkpoint`  up to where the queue may be deleted, and what has to be said again before that
`none`        `NoStore`: `mqtt.persistence.enable=false`
"""
