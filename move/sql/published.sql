-- How many tables a publication has.  $1: its name
SELECT count(*) FROM pg_publication_rel AS r JOIN pg_publication AS p ON p.oid = r.prpubid
WHERE p.pubname = $1
