# hopcast: `make run` shows it, `make test` proves it, `make check` is for those who work on it.

CARGO ?= cargo
PURE := hopcast-core hopcast-code hopcast-wire hopcast-config hopcast-link hopcast-radio hopcast-bridge hopcast-mesh hopcast-coded hopcast-reliable hopcast-explicit hopcast-host hopcast-peers hopcast-stack hopcast-trace hopcast-twin

.PHONY: run test check lint unit docs compiler purity deny arm fuzz interop miri bench bench-codes clean

## Send a real file over six lossy hops under each transport; print the table, write the report.
run:
	@scripts/setup run
	@echo "building hopcast (some minutes the first time)"
	@$(CARGO) build --release --quiet --package hopcast
	@target/release/hopcast run scenarios/six-hops.yaml --out runs/six-hops

## Set up and pass every test.
test:
	@scripts/setup test
	@scripts/require $(MAKE) --no-print-directory lint docs unit compiler purity deny arm fuzz
	@echo "make test: all passed"

## Format, clippy and the fast tests, in under three minutes.
check: lint
	$(CARGO) test --workspace --quiet --lib --bins

lint:
	$(CARGO) fmt --all --check
	@scripts/comment-width
	$(CARGO) clippy --workspace --all-targets --quiet -- --deny warnings
	@scripts/node-build

unit:
	$(CARGO) test --workspace --quiet

docs:
	RUSTDOCFLAGS="--deny warnings" $(CARGO) doc --workspace --no-deps --document-private-items --quiet

## The compiler has not got any of our code, or of a dependency's, wrong in the one way that is known.
compiler:
	@scripts/compiler

## The pure crates build where there is no operating system at all.
purity:
	@scripts/purity $(PURE)

deny:
	@scripts/deny

## Everything compiles for 64-bit and 32-bit Arm, and the codes' tests pass there, under QEMU.
arm:
	@scripts/arm

## A few seconds of each fuzz target, with the same seed each time. For longer: scripts/fuzz SECONDS [TARGET ...]
fuzz:
	@scripts/fuzz --smoke

## Ten transfers each way with libnorm and with OpenPGM at each loss, and streams of ten minutes: about half an hour.
interop:
	$(CARGO) test --package hopcast-live --test norm --test pgm -- --ignored

## Undefined behaviour in the codes, as far as Miri can interpret them. Takes minutes, so it is no part of `make test`.
miri:
	@scripts/miri

## Packet-hops a second of the engine, and NORM to ten receivers beside libnorm, on this machine. The codes beside their rivals are `make bench-codes`.
bench:
	$(CARGO) run --release --quiet --package hopcast-bench --bin packet-hops
	$(CARGO) run --release --quiet --package hopcast-bench --bin norm

## The codes beside memcpy, XOR, ISA-L and the crates that one would pick instead; a few minutes. See bench/README.md.
## With another kernel than the machine's best: make bench-codes KERNEL=AVX2
bench-codes:
	$(CARGO) run --release --quiet --locked --manifest-path bench/codes/Cargo.toml --target-dir target/bench-codes -- \
		$(if $(KERNEL),--kernel "$(KERNEL)")

clean:
	$(CARGO) clean
