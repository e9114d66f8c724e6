-- Conditions and clauses that other queries take in. They are no statements, so sqlfluff does not read them.

-- name: is_legacy
-- A text has the legacy form.
(
    starts_with({text}, %(legacy_prefix)s)
    and {text} <> ''
    and not (%(production_is_finer)s and starts_with({text}, %(production_prefix)s))
    and not (%(leaves_signed)s and {text} ~* %(signed)s)
)

-- name: is_production
-- A text has the production form.
(
    starts_with({text}, %(production_prefix)s)
    and {text} <> ''
    and not (%(legacy_is_finer)s and starts_with({text}, %(legacy_prefix)s))
    and not (%(leaves_signed)s and {text} ~* %(signed)s)
)

-- name: is_presigned
-- A text is, or holds, a presigned URL of the legacy bucket.
({text} ~* %(signed)s and position(%(legacy_prefix)s in {text}) > 0)

-- name: wanted_rows
-- What was read of the rows of a batch, and what they are to hold. The names are unlike those of a user's tables, which
-- `where` and `objects` may name.
rowferry_wanted as (
    select w.*
    from
        unnest(%(ids)s::text[], %(old)s::text[], %(objects)s::text[], {texts})
        as w ("rowferry: id", "rowferry: old", "rowferry: objects", {names})
)

-- name: is_as_read
-- All that was read of a row still holds.
({columns}) = ({id_wanted})
    and {in_range}
    and {text} collate "C" = rowferry_wanted."rowferry: old"
    and {same_objects}
    and {origin}
    and {where}

-- name: any_text
-- Some text at the path of a document has a form.
exists (
    select from ({places}) as p
    where jsonb_typeof(p.value) = 'string' and {has_form}
)

-- name: names_any
-- The condition that a row names one of some legacy keys.
exists (
    select from (select {object_columns}) as e
    cross join lateral ({listed}) as o
    where %(legacy_object)s::text || o.rest collate "C" = any(%(keys)s::text [])
)

-- name: has_state
-- A column of `moved` holds the value that tells one form; the parameter is the form's.
e.{column} = {value}::{type}

-- name: has_objects
-- The expression of `objects` names an object.
cardinality({required}) > 0

-- name: computed_keys
-- The keys that an expression of the plan yields, text or text[]; null and empty ones are none.
array_remove(array_remove(array[]::text[] || ({expression}
), null), '')

-- name: computed_objects
-- The required and the optional legacy keys of an entry, as a pair of arrays in JSON.
jsonb_build_array(to_jsonb({required}), to_jsonb({optional}))

-- name: root
-- The whole document is where a path begins. It is read once: offset 0 keeps the planner from doing so in each step.
select
    array[]::text[] as place,
    {document} as value
offset 0

-- name: child
-- A path goes on with `.name` of an object, or with `[0]` of an array.
select
    p.place || {step}::text as place,
    p.value -> {step} as value
from ({places}) as p
where jsonb_typeof(p.value) = {type}

-- name: members
-- A path goes on with `.*`.
select
    p.place || m.key as place,
    m.value
from ({places}) as p
cross join lateral jsonb_each(case jsonb_typeof(p.value) when 'object' then p.value end) as m

-- name: elements
-- A path goes on with `[*]`.
select
    p.place || (m.number - 1)::text as place,
    m.value
from ({places}) as p
cross join lateral jsonb_array_elements(case jsonb_typeof(p.value) when 'array' then p.value end)
with ordinality as m (value, number)

-- name: text_of_id
-- What stands for the text of an entry without one: it is shown, and there whatever the id is.
coalesce(nullif(e.{column}::text, ''), '-')

-- name: urls_in_text
-- The URLs in a longer text, by the numbers of their prefixes; rowferry/urls.py says where each ends.
select
    array[u.number::text] as place,
    to_jsonb(u.prefix || u.rest) as value
from (
    select
        m.number,
        m.part[1] as prefix,
        substring(
            t.after from coalesce(
                case when right(t.before, 32) ~* 'srcset\s*=\s*\\*["'']$' then %(url_ends)s::jsonb ->> '' end,
                %(url_ends)s::jsonb ->> right(t.before, 1),
                case when right(t.before, 6) ~ '(&#39;|&apos;)$' then %(url_ends)s::jsonb ->> '&#39;' end,
                %(url_ends)s::jsonb ->> ''
            )
        ) as rest
    from regexp_matches(e.{column}::text, %(url_pattern)s, 'g') with ordinality as m (part, number)
    inner join lateral (
        select
            s.number,
            s.part as before,
            lead(s.part) over (order by s.number) as after
        from regexp_split_to_table(e.{column}::text, %(url_pattern)s) with ordinality as s (part, number)
    ) as t on m.number = t.number
) as u
where u.rest ~ %(url_names_something)s

-- name: texts
-- The texts at the path of a document, in a JSON object by their places.
coalesce(
    (
        select jsonb_object_agg(p.place::text, p.value)
        from ({places}) as p
        where jsonb_typeof(p.value) = 'string'
    ),
    '{{}}'
)::text

-- name: document_of_array
-- An array as a document; null where its elements are arrays, or not numbered from 1, which a document cannot say.
case when array_ndims(e.{column}) = 1 and array_lower(e.{column}, 1) = 1 then to_jsonb(e.{column}) end

-- name: document_of_text
-- A text as a document; null where it is none that jsonb can hold.
case when pg_input_is_valid(e.{column}::text, 'jsonb') then e.{column}::text::jsonb end

-- name: document_of_entry
-- A text as a document, before the server could be asked whether it is one: only where the row meets the condition.
case when {where} then e.{column}::text::jsonb end

-- name: is_unreadable_text
-- A column holds something, but no document.
({column}::text <> '' and {document} is null)

-- name: is_unreadable_array
-- The same of an array.
(cardinality({column}) > 0 and {document} is null)

-- name: put_texts
-- The document with other texts at their places, all else as it is.
(
    select {put}
    from (
        select
            {document} as value,
            {texts}::jsonb as texts
        offset 0
    ) as document
)

-- name: put_text
-- The value at a place, or the text that takes its place.
coalesce(document.texts -> ({place})::text, {value})

-- name: put_child
-- A path goes on with `.name` of an object, or with `[0]` of an array.
case
    when jsonb_typeof({value}) = {type} and {value} -> {step} is not null
        then (
            select jsonb_set({value}, array[{step}::text], {inner}, false)
            from (select {value} -> {step} as value offset 0) as {below}
        )
    else {value}
end

-- name: put_members
-- A path goes on with `.*`.
case
    when jsonb_typeof({value}) = 'object'
        then (
            select coalesce(jsonb_object_agg({below}.key, {inner}), '{{}}')
            from jsonb_each({value}) as {below} (key, value)
        )
    else {value}
end

-- name: put_elements
-- A path goes on with `[*]`.
case
    when jsonb_typeof({value}) = 'array'
        then (
            select coalesce(jsonb_agg({inner} order by {below}.number), '[]')
            from jsonb_array_elements({value}) with ordinality as {below} (value, number)
        )
    else {value}
end

-- name: put_urls
-- The longer text with other URLs in their places: only their prefixes differ, all else stays byte for byte.
(
    select
        string_agg(
            concat(
                s.part,
                coalesce((regexp_match(t.texts ->> concat('{{', s.number, '}}'), '^' || %(url_pattern)s))[1], m.part[1])
            ),
            '' order by s.number
        )
    from (select {texts}::jsonb as texts offset 0) as t
    cross join lateral regexp_split_to_table(e.{column}::text, %(url_pattern)s) with ordinality as s (part, number)
    left join regexp_matches(e.{column}::text, %(url_pattern)s, 'g') with ordinality as m (part, number)
        on s.number = m.number
)

-- name: to_array
-- A document that was an array of texts.
array(select jsonb_array_elements_text({document}))

-- name: object_of_text
-- What follows the prefix in a text of the column, and the text that legacy and production rows hold; `rest` is null
-- where it is badly encoded.
select
    %(legacy_prefix)s::text || t.rest as legacy_text,
    %(production_prefix)s::text || t.rest as production_text,
    null::text as computed_key,
    {decoded} as rest
from (select substr(e.text, char_length(%({form}_prefix)s::text) + 1) as rest) as t

-- name: objects_of_document
-- The same for each text of a document that has the form.
select
    %(legacy_prefix)s::text || t.rest as legacy_text,
    %(production_prefix)s::text || t.rest as production_text,
    null::text as computed_key,
    {decoded} as rest
from (
    select substr(p.value, char_length(%({form}_prefix)s::text) + 1) as rest
    from jsonb_each_text(e.text::jsonb) as p
    where {has_form}
) as t

-- name: computed_objects_of_entry
-- What follows the prefix of the legacy bucket's keys in each computed key; `rest` is null where it has another.
select
    null::text as legacy_text,
    null::text as production_text,
    u.key as computed_key,
    case
        when starts_with(u.key, %(legacy_object)s) then substr(u.key, char_length(%(legacy_object)s::text) + 1)
    end as rest
from jsonb_array_elements(e.objects) as l (keys)
cross join lateral jsonb_array_elements_text(l.keys) as u (key)

-- name: rest_of_url
-- What a URL in a longer text writes behind its prefix, as rowferry/urls.py reads it: without the signs at its end, and
-- with what stands for another character as that.
regexp_replace(
    replace(replace(replace(replace(replace(replace(
        case
            when t.rest ~ '\([^()]*\)[].,;:!?''*_~)}}|`]*$'
                then regexp_replace(t.rest, '(\([^()]*\))[].,;:!?''*_~)}}|`]*$', '\1')
            else regexp_replace(t.rest, '[].,;:!?''*_~)}}|`]+$', '')
        end,
        '&quot;', '"'), '&#34;', '"'), '&#39;', ''''), '&apos;', ''''), '&#38;', '&'), '&amp;', '&'
    ),
    '\\([!-/:-@[-`{{-~])', '\1', 'g'
)

-- name: percent_decoded
-- The key that a percent-encoded text writes, without `?` and `#` and what follows them; null where its bytes are not
-- UTF-8, as Unicode's table 3-7 has it, or hold a NUL, which no text of PostgreSQL can.
(
    select
        case
            when b.bytes ~ (
                '^(0[1-9a-f]|[1-7][0-9a-f]|(c[2-9a-f]|d[0-9a-f])[89ab][0-9a-f]'
                || '|(e0[ab]|e[1-9abcef][89ab]|ed[89])[0-9a-f][89ab][0-9a-f]'
                || '|(f0[9ab]|f[1-3][89ab]|f48)[0-9a-f]([89ab][0-9a-f]){{2}})*$'
            ) then convert_from(decode(b.bytes, 'hex'), 'UTF8')
        end
    from (
        select
            coalesce(
                string_agg(
                    case
                        when m.part[1] ~ '^%%[0-9A-Fa-f]{{2}}$' then lower(substr(m.part[1], 2))
                        else encode(convert_to(m.part[1], 'UTF8'), 'hex')
                    end,
                    '' order by m.number
                ),
                ''
            ) as bytes
        from regexp_matches(regexp_replace({rest}, '[?#].*', ''), '%%[0-9A-Fa-f]{{2}}|[^%%]+|%%', 'g')
        with ordinality as m (part, number)
    ) as b
)

-- name: mapped_text
-- The text that a row of one form holds in the other.
(%({to}_prefix)s::text || substr({text}, char_length(%({origin}_prefix)s::text) + 1))

-- name: mapped_texts
-- The same for the texts of a document, by their places.
(
    select
        coalesce(
            jsonb_object_agg(
                p.key,
                case
                    when {has_form}
                        then %({to}_prefix)s::text || substr(p.value, char_length(%({origin}_prefix)s::text) + 1)
                    else p.value
                end
            ),
            '{{}}'
        )
    from jsonb_each_text({text}::jsonb) as p
)

-- name: if_of_form
-- What a column would hold once its row has moved; a row of no such form stays as it is.
case when {has_form} then {value} else e.{column} end

-- name: condition_and_objects
-- Whether a row meets the condition, and which objects it has then, as a pair in JSON.
jsonb_build_array(({where}) is true, case when ({where}) is true then {objects} end)

-- name: of_rewritten_row
-- The condition and the objects of a row, once columns of it are rewritten.
(
    select {condition_and_objects}
    from (select {columns_rewritten}) as e
)

-- name: is_from
-- An entry's id is this one or behind it; given its first columns only, it is any that begins with them, or behind.
({columns}) >= ({bound})

-- name: is_until
-- The same up to an id.
({columns}) <= ({bound})

-- name: is_between
-- A column is in a range, both ends included.
({column} >= {first} and {column} <= {last})

-- name: has_changed
-- A row that stays has changed since the last pass, as far as its column of times tells.
(e.{changed} is null or e.{changed} >= %(since)s::{type})

-- name: has_changed_epoch
-- The same of a number that counts since 1970: seconds, or thousandths, millionths, billionths of one, by its size.
(
    e.{changed} is null
    or (e.{changed} >= %(since)s::numeric and e.{changed} < 1e11)
    or (e.{changed} >= 1000 * %(since)s::numeric and e.{changed} < 1e14)
    or (e.{changed} >= 1000000 * %(since)s::numeric and e.{changed} < 1e17)
    or e.{changed} >= 1000000000 * %(since)s::numeric
)

-- name: waiting_ranges
-- The ranges of ids that batches of a queue cover which wait or are in ERROR.
select
    {first_waiting} as first_id,
    {last_waiting} as last_id
from rowferry.batch_queue as q
where
    q.migration_id = %(migration_id)s
    and q.queue_name = %(queue)s
    and q.status in ('INIT', 'ERROR')
    and q.payload ->> 'entries' = %(label)s

-- name: no_waiting_ranges
-- The same of a migration that was never enqueued: there may be no queue.
select
    {id_value} as first_id,
    {id_value} as last_id
from {table} as e
where false

-- name: free_entries_limit
-- Takes the first free entries only, in the order in which they are numbered.
limit %(limit)s

-- name: update_excluded
-- What an upsert does with a row that is there: it is left alone where it holds all that it would be given.
update set {assignments}
where row({present}) is distinct from row({excluded})
