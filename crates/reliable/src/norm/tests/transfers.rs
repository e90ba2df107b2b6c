//! Objects, streams and messages, with and without loss.
