select
    p.migration,
    p.queue_name as queue,
    (p.missing + p.conflict + p.failed)::double precision / (p.entries - p.waiting) as value
from rowferry.progress as p
where p.entries > p.waiting and p.missing + p.conflict + p.failed > 0.01 * (p.entries - p.waiting)
