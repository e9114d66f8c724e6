(
    starts_with(e.{key}::text, %(legacy_prefix)s)
    and e.{key}::text <> ''
    and not (%(production_is_finer)s and starts_with(e.{key}::text, %(production_prefix)s))
)
