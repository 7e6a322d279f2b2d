-- the name of an object, without its kind and its parameters if it is in a schema
regexp_replace({{1}}, '^\w+ ([^(]+\.[^(]*).*', '\1')
