//! End-to-end tests: the tracer against the simulator's truth.
