-- $1: names and patterns; the shards that fit
SELECT string_agg(schema_name, ', ') FROM instaid.shards WHERE {{matches schema_name::text}}
