// Package reader takes request bodies apart into events: lines of JSON, JSON
// arrays, CloudEvents. What it returns are slices of the body, byte for byte;
// it builds no tree, and it never recurses over nesting that a client chose.
package reader
