-- Whether an entry's id lies between two bounds, both included; null is no bound.
(
    (%(first_wanted)s::{id_type} is null or e.{id} >= %(first_wanted)s::{id_type})
    and (%(last_wanted)s::{id_type} is null or e.{id} <= %(last_wanted)s::{id_type})
)
