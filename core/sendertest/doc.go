// Package sendertest is the suite that every destination passes: what a
// [core.Sender] owes its caller, tried against a real server of the
// destination's protocol, in every format.
//
// What a destination cannot do, such as naming the items that failed, its
// harness leaves out. The suite's last log line says so:
//
//	sendertest: filesend: 48 cases, without: partial failure, throttling, refusal, oversize
package sendertest
