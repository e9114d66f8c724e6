-- To rewrite the keys of {table}, and nothing else there.
grant update ({key}) on {table} to {role};
