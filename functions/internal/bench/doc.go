// Package bench measures a built sluice binary against a bare HTTP server on
// the same machine in the same run, and checks that what it accepted is what
// it delivered.
//
//	Load ──64 connections──▶ bare | least durable | sluice serve ──▶ Sink
//
// The load carries each event's id and send time inside the event, so the sink
// can tell by itself what was lost, doubled, mixed between groups, reordered or
// late. The load and the sink share this process; every server runs in one of
// its own, the two references too, so that all of them pay for the same neighbours.
//
// Speed is told as a ratio to the bare server (1.00), and times, sizes and
// counts beside the bound they must keep: a bare number says more of the
// machine than of the program. Rates are medians of rounds in which the servers
// take turns, since machines have moods.
package bench
