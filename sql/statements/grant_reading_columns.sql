-- To read the entries of {table}: their ids and keys, no other column.
grant usage on schema {schema} to {role};
grant select ({id}, {key}) on {table} to {role};
