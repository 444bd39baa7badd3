package jq

// FaultOf is what a program says of an error of gojq.
func FaultOf(program string, err error) error { return (&Program{text: program}).runFault(err) }
