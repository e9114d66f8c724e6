-- A PHP shop of several tenants: every table's key begins with the tenant, and file numbers begin at 1 for each.

create table tenants (
    id integer primary key,
    name text not null
);

create table product_files (
    tenant_id integer not null references tenants (id),
    file_no integer not null,
    path varchar(300) not null,
    title text not null default '',
    primary key (tenant_id, file_no)
);

create table products (
    tenant_id integer not null references tenants (id),
    sku text not null,
    gallery text [] not null default '{}',
    price numeric(10, 2) not null default 0,
    primary key (tenant_id, sku)
);
