// Package jq runs the filters and transforms of a configuration, which are jq
// programs, on events. The language is that of gojq.
//
// # What a program sees
//
// "." is the payload, or null when it is no JSON. $id, $source and $headers are
// the event's. The environment is empty; there are no files, modules, other
// inputs and no place to write debugging output to. Programs that ask for the
// clock, for a time zone or for any of these are refused when they are compiled,
// as are names that begin with _. Only the first result counts; halt is an error.
//
// # What is lost
//
// The order of an object's keys: they come out sorted, and of two that are equal
// the last stays. Numbers come out as they were written as long as nothing is
// calculated with them. Sums and products of whole numbers are exact; with
// fractions or exponents they are those of float64, and infinities become the
// greatest float64. Text that is not UTF-8 has U+FFFD in its place. Numbers of
// more than 1,000 digits are errors.
//
// Regular expressions are those of package regexp, as in gojq. An empty match
// right behind another match does not count, which gojq finds.
//
// # What is bounded, and how
//
// gojq bounds nothing itself. Here a run ends after
//
//   - 1,000,000 instructions of gojq. It asks its context before each whether to
//     go on; the context counts them. They mostly take 25 to 150 ms, and so end an
//     endless program long before the clock does. No program that was tried held
//     more than 80 MB, or made more than 170 MB in all.
//
//   - 64 MiB of work, in bytes that single instructions go through or make. Each
//     operator and function whose cost depends on the size of what it is given
//     is rewritten to ask for its share before it runs: copies (+), texts (tojson,
//     "\(...)", @html) at 8 bytes for one, values made of texts (explode, split)
//     at 32, repeated strings, join and transpose by what comes out, searches and
//     differences of arrays by the product of both sides, and regular expressions
//     by the product of text and program. Functions that are not known to be
//     light go through all that they are given. Arrays can be written to up to
//     index 65,536.
//
//   - 2 s, for what the others count too little of: an array of a million that is
//     gone through from its begin again and again, sorts, numbers of 1,000 digits.
//     The clock is looked at every 256 instructions or 2 MiB of work, and of the
//     time between two looks at most half a second counts, so that a machine that
//     stood still fails nothing.
//
// The first two depend on program and payload alone; the clock leaves room for a
// machine of which a run gets a tenth. All are the program's fault, and what fails
// is not worth another try; only when the caller's context ends does the error
// say so instead. None can be caught by try. A single instruction runs to its end:
// at 1 MiB that is up to some 0.2 s for a sort or a search, and 0.4 s for a regular
// expression that fits its text as badly as possible. Decoding the payload comes
// before, and writing the result after, the time that is measured; where several
// programs run on one event, one after the other, it is decoded once for all.
//
// Programs take at most 16 KiB, payloads 10 MiB and 1,000 levels; results 1 MiB,
// or twice the payload. A dense payload, such as [0,0,...], takes 30 to 50 times
// its length when it is decoded. All of this is per run: runs at the same time
// add up.
//
// Programs come from the operator. The bounds are for mistakes in them and for
// payloads of others; they are no sandbox for programs of strangers.
package jq
