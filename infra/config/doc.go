// Package config reads sluice.yaml.
//
//	bytes ─▶ tree ─▶ decoder ─▶ core.Config ─▶ Validate ─▶ Lint
//	          │         │                         │          │
//	          syntax    fields and types          faults     warnings
//
// Every fault is reported at once, with its place in the file. The decoder
// walks the YAML tree by one table of fields (fields.go), which is also what
// the JSON Schema is made of, so that the two cannot differ. What a value may
// be beyond its type is for package core alone; a fault found there is given
// its place by its path.
//
// Anchors, aliases, merge keys and tags are refused: a configuration says
// everything where it counts, and no file can grow while it is read.
package config
