# Two commands do everything: `make book` builds and serves the book, `make test` runs every test.
.PHONY: help book site lab test bench notebooks constraints env test-env data lib tests tools
PY := .venv/bin/python
AS_ROOT := $(shell [ "$$(id -u)" != 0 ] || echo --allow-root)

help:
	@echo "make book       build the book and serve it on this machine (Ctrl-C stops it)"
	@echo "make test       run every test: library, notebooks, built pages in a browser"
	@echo "make lab        open the chapters in JupyterLab"
	@echo "make site       build the pages only, into book/_build/html"
	@echo "make bench      print the speed of the simulator, of drawing, of the pages and of the sliders"
	@echo "make notebooks  run all chapters and bring them into the committed form"

book: env
	@$(PY) tools/pages.py serve

site: env
	@$(PY) tools/pages.py build

lab: env
	@$(PY) -m jupyter lab --ServerApp.root_dir=. --LabApp.default_url=/lab/tree/book/chapters $(AS_ROOT)

test: test-env
	@$(PY) tools/browser.py
	$(PY) -m pytest -n 2 --no-loadscope-reorder --nbval --nbval-cell-timeout=60 lib book/chapters tests

bench: test-env site
	@$(PY) tools/browser.py
	@$(PY) tools/bench_engine.py
	@$(PY) tools/bench.py

notebooks: env
	@$(PY) tools/notebooks.py run

constraints: test-env
	@$(PY) -m pip install -q uv
	@echo "# Exact versions of everything, for requirements.txt and tests/requirements.txt. Made by: make constraints" > constraints.new
	@$(PY) -m uv pip compile -q --universal --python-version 3.11 --no-header --no-annotate --no-config --upgrade tests/requirements.txt | grep -v '^-e' >> constraints.new
	@mv constraints.new constraints.txt

env:
	@sh tools/setup.sh requirements.txt

define unknown
@echo "There is no '$@'. There is:"; $(MAKE) -s help; exit 2
endef

.DEFAULT:
	$(unknown)

data lib tests tools: # folders, not commands
	$(unknown)

test-env:
	@sh tools/setup.sh tests/requirements.txt
