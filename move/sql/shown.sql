-- An array for people.  $1: it, $2: tell the number of more than so many
SELECT CASE WHEN cardinality($1::text[]) <= $2::integer THEN array_to_string($1::text[], ', ')
    ELSE format('%s shards', cardinality($1::text[])) END
