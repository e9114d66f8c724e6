-- Ranges that wait are looked up for each entry: 128 MB hold a million of them, and spilling them would spill the entries.
-- Right after an enqueue the statistics still say that hardly any waits: a nested loop would compare all with all.
select
    set_config(
        'hash_mem_multiplier',
        greatest(1, least(1000, 128 * 1024 * 1024 / pg_size_bytes(current_setting('work_mem'))))::text,
        true
    ),
    set_config('enable_nestloop', 'off', true)
