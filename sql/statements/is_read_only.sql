-- Whether nothing can be written in this session: a standby, or a setting of the server, the database or the role.
select current_setting('transaction_read_only')::boolean as is_read_only
