-- Mastodon 4.4: accounts and media. Source: db/schema.rb, config/initializers/paperclip.rb,
-- app/models/media_attachment.rb, app/models/concerns/account/avatar.rb.

create sequence accounts_id_seq;
create sequence media_attachments_id_seq;

-- As Mastodon's own: milliseconds in the upper bits, a number that repeats late in the lower 16.
create function timestamp_id(table_name text) returns bigint language sql volatile as $$
    select (((extract(epoch from clock_timestamp()) * 1000)::bigint << 16)
        | (nextval(table_name || '_id_seq') & 65535))
$$;

create table accounts (
    id bigint primary key default timestamp_id('accounts'),
    username varchar not null default '',
    domain varchar,
    private_key text,
    public_key text not null default '',
    created_at timestamp not null default now(),
    updated_at timestamp not null default now(),
    note text not null default '',
    display_name varchar not null default '',
    uri varchar not null default '',
    avatar_file_name varchar,
    avatar_content_type varchar,
    avatar_file_size integer,
    avatar_updated_at timestamp,
    header_file_name varchar,
    header_content_type varchar,
    header_file_size integer,
    header_updated_at timestamp,
    avatar_remote_url varchar,
    header_remote_url varchar not null default '',
    avatar_storage_schema_version integer,
    header_storage_schema_version integer
);
create unique index index_accounts_on_username_and_domain_lower
    on accounts (lower(username), coalesce(lower(domain), ''));

create table media_attachments (
    id bigint primary key default timestamp_id('media_attachments'),
    status_id bigint,
    file_file_name varchar,
    file_content_type varchar,
    file_file_size integer,
    file_updated_at timestamp,
    remote_url varchar not null default '',
    created_at timestamp not null default now(),
    updated_at timestamp not null default now(),
    shortcode varchar,
    type integer not null default 0,
    file_meta json,
    account_id bigint references accounts (id) on delete set null,
    description text,
    scheduled_status_id bigint,
    blurhash varchar,
    processing integer,
    file_storage_schema_version integer,
    thumbnail_file_name varchar,
    thumbnail_content_type varchar,
    thumbnail_file_size integer,
    thumbnail_updated_at timestamp,
    thumbnail_remote_url varchar
);
create unique index index_media_attachments_on_shortcode on media_attachments (shortcode)
    where shortcode is not null;
create index index_media_attachments_on_status_id on media_attachments (status_id);
