-- Whether the bounds of a batch still are ids: an error where they are not.
select
    %(first)s::text::{id_type} as first,
    %(last)s::text::{id_type} as last
