// Package cli is the command line of Sluice.
//
//	serve            runs the whole system in this process
//	lint schema route   read a configuration; talk to nobody
//	send buffers groups flush dlq   talk to a running system over its HTTP API
//
// Exit codes: 0 it worked; 1 it did not; 2 the command line was wrong. What a
// command is for goes to stdout, everything about it to stderr. Colours and
// progress bars are for terminals only. Text that comes from a server or from
// client data is escaped before it reaches a terminal.
package cli
