// Package memory is the reference store: maps behind one mutex, so plain that
// it is right at sight. The conformance suites measure every other store
// against it, and the core's own tests run on it. It keeps nothing when the
// process ends and so is never what a deployment runs on, but for the
// [Coordinator] of a process that is alone.
package memory
