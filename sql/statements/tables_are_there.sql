select bool_and(to_regclass(names.name) is not null) as are_there
from unnest(%(tables)s::text []) as names (name)
