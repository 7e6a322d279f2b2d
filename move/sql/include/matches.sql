EXISTS (SELECT FROM unnest($1::text[]) AS p WHERE {{fits {{1}}|p}})
