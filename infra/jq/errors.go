package jq

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/itchyny/gojq"
)

// fault is an error in words for people, of one line and up to maxReason.
type fault string

func (f fault) Error() string { return string(f) }

// maxReason bounds what an error quotes, which may be of the payload, in bytes.
const maxReason = 200

const (
	errDeep   = fault("a value is nested more than 1000 deep")
	errLong   = fault("the result is too long")
	errWork   = fault("the program works on too much data, or makes too much of it")
	errSlow   = fault("the program takes longer than 2 s")
	errSteps  = fault("the program takes too many steps")
	errDigits = fault("a number has more than 1000 digits")
	errIndex  = fault("an index is greater than 65536")
)

func faultf(format string, args ...any) error { return cut(fmt.Sprintf(format, args...)) }

// cut makes one line of up to maxReason of a text.
func cut(s string) error {
	whole := len(s) <= maxReason
	if !whole {
		s = s[:maxReason-len("…")]
	}
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	if !whole {
		s += "…"
	}
	return fault(s)
}

// parseFault puts the place in front of what gojq says.
func parseFault(text string, err error) error {
	e, ok := errors.AsType[*gojq.ParseError](err)
	if !ok {
		return cut(err.Error())
	}
	before := text[:min(max(e.Offset-len(e.Token), 0), len(text))]
	line := 1 + strings.Count(before, "\n")
	column := 1 + len([]rune(before[strings.LastIndexByte(before, '\n')+1:]))
	return faultf("%d:%d: %v", line, column, err)
}

// runFault is the error of a program.
func runFault(err error) error {
	if halt, ok := errors.AsType[*gojq.HaltError](err); ok && halt.Value() == nil {
		return fault("the program halts")
	}
	return cut(err.Error())
}
