-- To read the entries of {table}: all of it, since the plan's `where` may name any column.
grant usage on schema {schema} to {role};
grant select on {table} to {role};
