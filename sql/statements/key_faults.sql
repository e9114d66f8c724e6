-- How many legacy keys of one table become usable production keys (a null fault), and how many do not, and why.
with judged as (
    select
        e.legacy_key,
        case
            when e.production_key = '' then 'empty'
            when octet_length(convert_to(e.production_key, 'UTF8')) > %(max_bytes)s then 'too long'
            when not {becomes_production} then 'still legacy'
            when char_length(e.production_key) > %(column_length)s then 'too wide'
        end as fault
    from ({legacy_keys}) as e
)

select
    j.fault,
    count(*) as entries,
    min(j.legacy_key) as example
from judged as j
group by j.fault
