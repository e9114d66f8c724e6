-- The legacy keys of one table and what they become, as rowferry/keys.py has it.
select
    e.{key}::text collate "C" as legacy_key,
    %(production_prefix)s::text || substr(e.{key}::text, char_length(%(legacy_prefix)s::text) + 1) collate "C"
    as production_key
from {table} as e
where {is_legacy} and {where}
