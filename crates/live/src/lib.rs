//! Scenarios on the kernel: namespaces, links over TAP, real programs.
