-- MLflow: a row names a folder of objects, by a URL. Folders lie in one another: an experiment's holds those of its
-- runs, a run's those of its models. A run that logs no artifact has a URL and no object.
-- Source: mlflow/store/tracking/dbmodels/models.py.
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
from generate_series(1, 9) as n;
insert into runs
select
    md5('r' || n), 'run ' || n, 'FINISHED', 1700000000000 + n, 1700000000000 + n, null,
    's3://{bucket}/mlflow/' || n % 8 + 1 || '/' || md5('r' || n) || '/artifacts', n % 8 + 1
from generate_series(1, 90) as n;
insert into model_versions
select
    'model', n, case when n % 4 = 0 then 'runs:/' || run_uuid || '/model' else artifact_uri || '/model' end, run_uuid,
    'READY', artifact_uri || '/model', 1, 1700000000000
from (
    select row_number() over (order by run_uuid) as n, artifact_uri, run_uuid from runs
    where substr(name, 5)::integer % 7 > 0 limit 20
) as made;
-- keys
select
    'mlflow/' || experiment_id || '/' || run_uuid || '/artifacts/' || file
from runs, unnest(array['model/MLmodel', 'model/data/model.pkl', 'model/requirements.txt', 'plot ü.png']) as file
where substr(name, 5)::integer % 7 > 0
union all
select 'mlflow/' || experiment_id || '/' || run_uuid || '/artifacts/checkpoints/' || n || '/weights.bin'
from runs, generate_series(1, 3) as n
where substr(name, 5)::integer % 5 = 0 and substr(name, 5)::integer % 7 > 0;
