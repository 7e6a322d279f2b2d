-- the name of an object, without its parameters, nor its kind if one can be called as another
regexp_replace({{1}}, '^(function|aggregate|procedure|operator|type) ((?:"(?:[^"]|"")*"|[^"(])*).*', '\2')
