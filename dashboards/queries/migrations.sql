select migration from rowferry.migration_status order by created_at desc
