-- Conditions and clauses that other queries take in. They are no statements, so sqlfluff does not read them.

-- name: is_legacy
-- An entry's key has the legacy form.
(
    starts_with(e.{key}::text, %(legacy_prefix)s)
    and e.{key}::text <> ''
    and not (%(production_is_finer)s and starts_with(e.{key}::text, %(production_prefix)s))
)

-- name: is_production
-- An entry's key has the production form.
(
    starts_with(e.{key}::text, %(production_prefix)s)
    and e.{key}::text <> ''
    and not (not %(production_is_finer)s and starts_with(e.{key}::text, %(legacy_prefix)s))
)

-- name: is_within
-- An entry's id lies between two bounds, inclusive; null is no bound.
(
    (%(first_wanted)s::{id_type} is null or e.{id} >= %(first_wanted)s::{id_type})
    and (%(last_wanted)s::{id_type} is null or e.{id} <= %(last_wanted)s::{id_type})
)

-- name: free_entries_limit
-- Takes the first free entries only.
order by n.stretch, n.position limit %(limit)s
