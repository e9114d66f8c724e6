select migration from rowferry.migration_state order by created_at desc
