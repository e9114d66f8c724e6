-- Some legacy keys of one table and what they become, spread over its ids as a hash of them falls; one scan.
select
    e.{key}::text as legacy_key,
    %(production_prefix)s::text || substr(e.{key}::text, char_length(%(legacy_prefix)s::text) + 1) as production_key
from {table} as e
where {is_legacy} and {where}
order by hashtext(e.{id}::text)
limit %(most)s
