-- Whether a role is there, and whether this one may make it; PostgreSQL lets a superuser do so as well.
select
    exists (select from pg_roles where rolname = %(role)s) as is_there,
    (select r.rolsuper or r.rolcreaterole from pg_roles as r where r.rolname = current_user) as may_create
