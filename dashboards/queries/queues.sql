select queue_name from rowferry.queue_status where migration = ${migration:sqlstring} order by position
