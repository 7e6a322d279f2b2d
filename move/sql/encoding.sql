-- What the bytes of texts depend on.
SELECT concat_ws(', ', pg_encoding_to_char(encoding), datcollate, datctype)
FROM pg_database WHERE datname = current_database()
