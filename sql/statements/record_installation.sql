insert into rowferry.installation (version)
values (%(version)s)
on conflict on constraint installation_pkey do update
set version = excluded.version, initialised_at = now()
