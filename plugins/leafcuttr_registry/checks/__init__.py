"""Reading and comparing schemas, in worker processes: what a client sends may take long, or need much memory.

work            what a worker process does
reading         a text becomes canonical, or is refused; what was read is remembered
levels          which versions a level asks for, and in which direction
comparing       why a schema is not compatible, as messages
"""
