-- is the second one a pattern or name of the first?
({{1}} = {{2}} OR {{2}} LIKE '%\%%' AND {{1}} LIKE replace(replace({{2}}, '\', '\\'), '_', '\_'))
