-- a trigger t that refuses while there is a schema $2
t.tgname = 'instaid_move_guard' AND t.tgfoid = 'instaid._move_guard()'::regprocedure
    AND t.tgargs = convert_to($2::text, 'UTF8') || '\x00'
