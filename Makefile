# hopcast: `make run` shows it, `make test` proves it, `make check` is for those who work on it.

CARGO ?= cargo
PURE := hopcast-core hopcast-code hopcast-wire hopcast-link hopcast-coded hopcast-host hopcast-peers

.PHONY: run test check lint unit docs purity deny bench clean

## Send a real file over six lossy hops under each transport; print the table, write the report.
run:
	@scripts/setup run
	@echo "building hopcast (a minute or two the first time)"
	@$(CARGO) build --release --quiet --package hopcast
	@target/release/hopcast run scenarios/six-hops.yaml --out runs/six-hops

## Set up and pass every test.
test:
	@scripts/setup test
	@scripts/require $(MAKE) --no-print-directory lint docs unit purity deny
	@echo "make test: all passed"

## Format, clippy and the fast tests, in under three minutes.
check: lint
	$(CARGO) test --workspace --quiet --lib --bins

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --quiet -- --deny warnings

unit:
	$(CARGO) test --workspace --quiet

docs:
	RUSTDOCFLAGS="--deny warnings" $(CARGO) doc --workspace --no-deps --document-private-items --quiet

## The pure crates build where there is no operating system at all.
purity:
	@scripts/purity $(PURE)

deny:
	@scripts/deny

## Packet-hops a second of the engine, on this machine.
bench:
	$(CARGO) run --release --quiet --package hopcast-bench --bin packet-hops

clean:
	$(CARGO) clean
