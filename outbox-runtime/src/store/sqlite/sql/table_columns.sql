-- Without a schema (NULL) every attached database is searched, as a statement's own lookup does.
SELECT name FROM pragma_table_info($1, $2)
