"""Plugins: found, imported, checked, registered, and run.

`catalogue.Finder` comes first: from settings about plugins to a table of `Loaded` ones, and their settings joined to
the core's. `entry_points` and `folder` say where plugins are, `importing` whether a module is one, `registration` what
its hooks return. pluggy lives in `registration` alone and is called at the start only; afterwards the broker uses the
objects that the hooks returned. `activation` brings them to a running broker, `services` runs them, `facade` is what
they see.
"""
