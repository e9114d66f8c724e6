-- MLflow: a row names a folder of objects, by a URL. Source: mlflow/store/tracking/dbmodels/models.py.
create table experiments (
    experiment_id serial primary key, name varchar(256) not null unique, artifact_location varchar(256),
    lifecycle_stage varchar(32), creation_time bigint, last_update_time bigint
);
create table runs (
    run_uuid varchar(32) primary key, name varchar(250), status varchar(9), start_time bigint, end_time bigint,
    deleted_time bigint, artifact_uri varchar(200), experiment_id integer references experiments (experiment_id)
);
create table model_versions (
    name varchar(256) not null, version integer not null, source varchar(500), run_id varchar(32), status varchar(20),
    storage_location varchar(500), creation_time bigint, last_updated_time bigint, primary key (name, version)
);
insert into experiments
select n, 'Experiment ' || n, 's3://{bucket}/mlflow/' || n, 'active', 1700000000000 + n, 1700000000000 + n
from generate_series(1, 8) as n;
insert into runs
select
    md5('r' || n), 'run ' || n, 'FINISHED', 1700000000000 + n, 1700000000000 + n, null,
    's3://{bucket}/mlflow/' || n % 8 + 1 || '/' || md5('r' || n) || '/artifacts', n % 8 + 1
from generate_series(1, 90) as n;
insert into model_versions
select 'model', n, artifact_uri || '/model', run_uuid, 'READY', artifact_uri || '/model', 1, 1700000000000
from (select row_number() over (order by run_uuid) as n, artifact_uri, run_uuid from runs limit 20) as made;
-- keys
select
    'mlflow/' || experiment_id || '/' || run_uuid || '/artifacts/' || file
from runs, unnest(array['model/MLmodel', 'model/model.pkl', 'model/requirements.txt', 'plot.png']) as file;
