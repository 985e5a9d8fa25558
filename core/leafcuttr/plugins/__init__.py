"""Plugins: found, imported, checked, asked what they bring, and run.

`finding` is the door: from the values that were given to a table of `Loaded` plugins. `entry_points` and `folder` say
where plugins are, `importing` whether a module is one, `registration` what its hooks return. pluggy lives in
`registration` alone and is called at the start only; afterwards the broker uses the objects that the hooks returned.
"""
