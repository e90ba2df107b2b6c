//! Runs machines on the kernel.
